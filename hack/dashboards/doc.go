// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dashboards writes the dashboards of artifacts/monitoring/dashboards as JSON for Grafana.
// Each dashboard is a list of panels in a file of its own: fleet.go, cluster.go and
// operator.go. grafana.go turns panels into JSON. It imports nothing of the module.
//
// hack/update-docs.sh runs it. test/monitoring checks the queries.
package main
