// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registrytest gives tests of stores a real etcd, a scheme and the same
// kind of storage that the server uses: protobuf behind a watch cache. It is for
// tests only; start at etcd.go.
package registrytest
