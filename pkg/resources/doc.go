// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resources builds the Kubernetes objects of an EtcdCluster: pods, PVCs,
// Services, Secrets, the disruption budget and the Jobs of backups. It is pure: the same
// cluster and member always give the same object. It reads no clock, no cluster and no
// secret. It may import the API types, the types of Kubernetes, pkg/agent for the requests
// of the agent, and pkg/snapshot/manifest for the names of backups; it never imports the
// planner. No container has a shell; a user's text stays inside one element of an argument
// list. The golden files in testdata show the objects. Start at pod.go.
package resources
