// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage decides how the API server encodes its objects in its own etcd, and below which keys. It limits how much a
// namespace may write and store, and reads the size of the storage for the metrics. The programs and the tests of the registry both use it, so that the
// tests read and write what a server does. It imports nothing of this project; start at
// factory.go.
package storage
