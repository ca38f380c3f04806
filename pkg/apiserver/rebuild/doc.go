// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rebuild makes the storage of the API server again after it was lost, and no backup of
// it exists. Every EtcdCluster is in its record, a ConfigMap, with its UID. The result is a snapshot of
// etcd, which is brought back as a backup of the storage is. EtcdBackups and EtcdRestores are in no
// record. A tenant can write a ConfigMap, so what the API would not accept is kept apart.
//
// It may import the storage of the API server, its embedded etcd, the validation and pkg/resources. Start at rebuild.go;
// docs/how-to/operator-state.md has the procedure.
package rebuild
