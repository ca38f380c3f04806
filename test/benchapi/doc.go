// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command benchapi measures the API side by side with a CustomResourceDefinition of the same
// type. It starts etcd, the kube-apiserver and the API server on loopback, and ends them again.
// It sends equal requests to the CRD, to the API server behind the kube-apiserver, and to the API
// server directly. It prints ratios and judges nothing. `make bench-api` runs it;
// docs/explanation/bench-api.md explains each figure. Start at main.go.
package main
