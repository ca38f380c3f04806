// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flux applies, waits for, compares and prunes EtcdClusters with the library that
// Flux's kustomize-controller uses (github.com/fluxcd/pkg/ssa), on a real Kubernetes with the
// operator installed (KUBECONFIG).
//
// It is a module of its own, because that library needs controller-runtime, which nothing else
// here does. Start at flux_test.go.
package flux
