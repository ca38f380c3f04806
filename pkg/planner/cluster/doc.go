// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster decides what to do next about one EtcdCluster. It is pure: Decide
// looks at what was observed and answers with actions, a reason to wait or
// nothing; Status turns the same observation into the status of the object. It
// may import the API types and the standard library, never a client, a clock or a
// logger. The safety rules of docs/architecture.md (S1 to S8) are kept here, and
// the simulation checks them after every step. Start at decide.go.
package cluster
