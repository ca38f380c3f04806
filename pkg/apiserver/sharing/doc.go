// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sharing lets the EtcdClusters in the watch cache share equal parts. Most strings, pod
// policies and managed fields are the same in many clusters, and decoding an object allocates each
// of them again. Only objects of the watch cache share parts: nothing changes these. Start at
// cluster.go; storage.go puts it between etcd and the watch cache.
package sharing
