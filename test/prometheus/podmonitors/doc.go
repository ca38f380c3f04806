// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command podmonitors writes the configuration that the Prometheus Operator makes of the
// PodMonitors of artifacts/monitoring. The code of the Prometheus Operator selects and checks
// the PodMonitors, reads the Secrets that they name, and generates the configuration. So a
// Prometheus in a test scrapes what it scrapes for users, and nothing is written twice.
//
// This is a module of its own, because that code needs controller-runtime and another version
// of the libraries of Prometheus than the server. Start at generate.go.
package main
