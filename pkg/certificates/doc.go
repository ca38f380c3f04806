// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates reads and issues the certificates of clusters: what a secret
// holds and why it cannot be used, the TLS configuration of a client of etcd, and the
// certificates that are issued for a cluster. It gets the time in its arguments and
// does no I/O; it decides nothing. No error and no exported text of it holds a byte
// of a private key. Start at read.go; issue.go makes certificates.
package certificates
