// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package argocd compares manifests with the objects that the API server returns for them, with the library that Argo CD
// uses (github.com/argoproj/argo-cd/gitops-engine). test/gitops and test/integration record the pairs in testdata.
//
// It is a module of its own, because that library needs k8s.io/kubernetes. Its versions are those of the newest
// Kubernetes in hack/local/build, so that a machine that has built that Kubernetes has most packages compiled.
// Start at argocd_test.go.
package argocd
