// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oldest checks that the programs use only what the oldest supported Kubernetes
// serves. It does so without that Kubernetes: testdata has its discovery document, and
// Server is a kube-apiserver that serves the resources of a document, empty, and nothing
// else. hack/update-discovery.sh records the document again.
package oldest
