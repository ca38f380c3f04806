// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd assembles the storage of the API group: it maps the name of each resource and
// subresource to its endpoint. Packages cluster, backup and restore hold the strategy, the
// storage, the table and the subresources of one kind. Package genericstore is their common
// part. The package imports only the packages below it. Start at storage.go.
package etcd
