// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver serves the group etcd.database.coreos.com behind kube-aggregator. A
// completed Config creates a Server. The packages below:
//
//   - options parses flags and starts the server.
//   - storage encodes objects.
//   - fielderrors names the fields of a request that cannot be decoded.
//   - embeddedetcd runs an etcd in the process.
//   - kubeapi checks which APIs the kube-apiserver serves.
//   - clientca loads the CAs of client certificates.
//   - frontproxy recognizes requests that the kube-apiserver has authorized.
//   - servingcert issues the certificate of the server.
//
// The package imports the registry and never a controller. Start at config.go.
package apiserver
