// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sharing lets the EtcdClusters in the watch cache share equal parts. Most strings, pod
// policies and managed fields are the same in many clusters, and decoding an object allocates each
// of them again. Only objects of the watch cache share parts, because nothing changes these. They keep
// the types of the API: if an object arrives in another form, it takes more memory, and nothing else
// happens. Start at storage.go; cluster.go says which parts are shared.
package sharing
