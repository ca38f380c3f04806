// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitops runs the health check that docs/how-to/gitops.md gives to Argo CD, and compares manifests with the
// objects that read back. What may differ is in a table of that page. test/argocd makes Argo CD's own comparison of
// the pairs that the package records, those of the examples with test/integration.
package gitops
