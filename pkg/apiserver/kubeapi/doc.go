// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeapi checks which APIs the kube-apiserver serves, before components of the server
// start to watch these APIs. A component whose API is not served would keep the server from
// becoming ready. It also checks that no CustomResourceDefinition serves the group of the server.
// The package imports nothing of this project. Start at requiredapi.go and definitions.go.
package kubeapi
