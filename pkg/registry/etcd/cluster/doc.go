// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster serves EtcdClusters and their subresources. strategy.go prepares and validates
// objects, table.go converts them to rows, deletion.go protects them. Each subresource has a
// file of its name; action.go is the common part of those that start an action. The package
// imports the API types, their validation, pkg/resources and the packages genericstore,
// health, prober and rights. Start at storage.go.
package cluster
