// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeapi asks the kube-apiserver which APIs it serves, before parts of the server
// that watch these APIs are started. A part whose API is missing would keep the server from
// ever becoming ready.
package kubeapi
