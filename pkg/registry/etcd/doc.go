// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd puts the stores of the API group together: it says which resource
// name is served by which endpoint. It imports only the packages below it; start at
// storage.go, and at kind/ for what the three kinds have in common.
package etcd
