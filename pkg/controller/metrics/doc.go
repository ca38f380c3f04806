// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics is what Prometheus reads from the controller: series of the process and
// its reconciles (process.go), of clusters (clusters.go), their certificates
// (certificates.go), backups (backups.go) and restores (restores.go). It imports no other
// package of the controller. Start at Register in process.go.
package metrics
