// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the base of the reconcilers of EtcdClusters, EtcdBackups and
// EtcdRestores. It holds the errors that decide how a reconcile ends (errors.go) and the
// write of a status (status.go). It also holds the gate that waits for own writes (gate.go)
// and the back-off after failed creations (backoff.go). It imports no other package of the
// controller. Start at errors.go.
package reconcile
