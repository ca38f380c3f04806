// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command olm writes a bundle with which the Operator Lifecycle Manager (OLM) installs the API server and the
// controller: a directory in the format registry+v1. kustomization.yaml says what is installed, from artifacts.
//
//   - read.go builds the kustomization, and sorts its objects into the parts that OLM takes
//   - csv.go makes the ClusterServiceVersion of them, which holds Deployments, rights and the served API
//   - write.go writes the files
//
// OLM creates the Service, the certificate and the APIService of an API server itself. The same inputs give the same
// bytes. It is a module of its own, because the library of OLM's API needs others that nothing else here does. Start at
// main.go.
package main
