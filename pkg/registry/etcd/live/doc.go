// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live asks the members of a cluster from inside the API server, so that
// what it says needs no controller: it reads pods, claims and the operator's secret
// from Kubernetes and talks to etcd through pkg/etcd. Every question is bounded in
// time and in number. It decides nothing; package picture does. Start at asker.go.
package live
