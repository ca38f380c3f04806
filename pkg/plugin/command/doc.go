// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command holds the commands of kubectl etcd. Commands that read print a report.
// Commands that change something print the plan of the API server, ask, and follow the change.
// The package imports every other package of the plugin. Start at Run, and at change in
// change.go.
package command
