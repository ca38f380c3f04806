// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd talks to managed etcd clusters, and nothing else in the project does. It
// reads the membership and the health of the members. It changes the membership one step
// at a time, and waits for a member to serve. It decides nothing. Reads of the membership are linearizable for every server since 3.2;
// errors are sentinels that errors.Is finds, never texts. Connections come from a
// Pool, which keeps one for each member that gets requests, each of them small, so that a
// thousand clusters stay cheap. Nothing here knows Kubernetes. Start at client.go; package etcdtest runs real servers.
package etcd
