// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sharing lets the EtcdClusters in the watch cache share equal parts. Most strings, pod
// policies and managed fields are the same in many clusters, and decoding an object allocates each
// of them again. Only objects of the watch cache share parts: nothing changes these. The watch cache
// holds a Cluster, not an EtcdCluster, so that a list does not copy objects (stored.go). Start at
// cluster.go; etcd.go stands between etcd and the watch cache, storage.go between the watch cache and
// requests.
package sharing
