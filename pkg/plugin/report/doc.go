// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report reads what the screens of the plugin show: a cluster, what its members say
// now, its conditions and its events. It decides what is wrong and draws nothing. The package
// imports the clients of the plugin and the API types. Start at ReadStatus and ReadWhy.
package report
