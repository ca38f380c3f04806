// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdadapter is the port to the members of clusters over a pool of connections. It
// imports the loop, whose workers it frees while a member does not respond. Start at
// members.go.
package etcdadapter
