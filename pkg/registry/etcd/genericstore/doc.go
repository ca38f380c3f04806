// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package genericstore is the generic part of the stores of EtcdClusters, EtcdBackups and
// EtcdRestores. It has the strategies for create, update and status, and the size limit of an
// object. It also checks the rights that an object needs, and prints tables. A kind describes
// itself with a Definition. The package imports the API types, package rights and k8s.io.
// Start at definition.go.
package genericstore
