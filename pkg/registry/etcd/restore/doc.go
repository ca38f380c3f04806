// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore stores EtcdRestores: strategy.go normalises and checks them,
// table.go shows them. It imports the API types and their validation. Start at
// storage.go.
package restore
