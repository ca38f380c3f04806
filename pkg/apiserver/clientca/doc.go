// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clientca loads the CAs of client certificates before the server accepts a
// connection. The generic server loads them while it serves, and lists only some of them to
// clients until then. A kube-apiserver that connects in these milliseconds sends no
// certificate, and all requests on that connection are anonymous. The package imports nothing
// of this project. Start at clientca.go.
package clientca
