// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdtest runs real etcd servers inside a test: one member at first, more
// as they are added, on loopback ports and in temporary directories. Members can be
// stopped with their data, killed, and started again. It is for tests only and ends
// everything that it started with the test.
package etcdtest
