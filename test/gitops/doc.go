// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitops runs the health check that docs/how-to/gitops.md gives to Argo CD.
package gitops
