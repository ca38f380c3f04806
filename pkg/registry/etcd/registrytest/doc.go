// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registrytest provides a real etcd, a scheme and the storage of the API server
// (protobuf behind a watch cache) to tests of stores. Only tests import it. Start at etcd.go.
package registrytest
