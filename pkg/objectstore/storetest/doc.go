// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storetest checks that a store keeps the promises of objectstore.Store, in
// good times and in bad: the same suite runs against every implementation and a real
// server, through a proxy that can be made slow, silent or faulty. It also starts
// those servers, on loopback and with certificates of an authority of their own. Start at
// suite.go.
package storetest
