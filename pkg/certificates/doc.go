// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates reads and issues the certificates of clusters. It says what a
// secret holds and why it cannot be used, builds the TLS configuration of a client of
// etcd, and issues certificates for a cluster. It gets the time in its arguments, does no
// I/O and decides nothing. No error and no exported text holds a byte of a private key.
// It may import the API types and pkg/resources. Start at read.go; issue.go makes
// certificates, and limits.go bounds what is read.
package certificates
