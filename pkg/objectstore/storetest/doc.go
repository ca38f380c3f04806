// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storetest checks that a store keeps the promises of objectstore.Store, with and
// without faults. The same suite runs against every implementation and a real server,
// through a proxy that can be slow, stalled or faulty. It also starts
// those servers, on loopback and with certificates of a CA of their own. Start at
// suite.go.
package storetest
