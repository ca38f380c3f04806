// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificate authorities, the certificates and the
// kubeconfigs of the local cluster. What exists is kept, so that a cluster which
// is repaired or grown goes on trusting itself.
package pki
