// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage tests what artifacts/ha/storage.sh decides, with a kubectl that runs no cluster. The tests with real
// members are in test/e2e. It may import the standard library. Start at kubectl in storage_test.go.
package storage
