// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights decides which further rights a request needs beside the right to its own
// verb, and asks the kube-apiserver for them. A request that names a Secret or a
// ServiceAccount needs the right to use it, because a pod that the controller creates mounts
// it or runs as it. The decisions in needs.go and given.go are pure. The package imports
// only the API types and k8s.io; start reading at needs.go.
package rights
