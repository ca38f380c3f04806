// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd names the API group etcd.database.coreos.com. The versioned
// types live below it; it imports nothing of this project.
package etcd

// GroupName is the API group that EtcdCluster, EtcdBackup and EtcdRestore
// belong to. It is the group that etcd-operator's users already write.
const GroupName = "etcd.database.coreos.com"
