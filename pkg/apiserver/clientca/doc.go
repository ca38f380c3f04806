// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clientca loads the authorities of client certificates before the first
// connection is taken. The generic server loads them while it serves already, and
// meanwhile tells clients about some of them only. A kube-apiserver that connects
// in those milliseconds shows no certificate, keeps the connection, and all its
// users are anonymous until it ends. It imports nothing of this project; start at
// clientca.go.
package clientca
