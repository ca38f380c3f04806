// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clientcert remembers what was found out about client certificates. The generic server
// verifies the certificate of a connection again with every request, which costs a signature
// check each time. The package imports nothing of this project. Start at remembered.go.
package clientcert
