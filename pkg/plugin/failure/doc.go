// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package failure gives each error of the plugin an exit code and a text with fact, cause and
// remedy. A missing right is named with the ClusterRole that gives it. The package imports the
// errors of the Kubernetes API and nothing else of the plugin. Start at Explain.
package failure
