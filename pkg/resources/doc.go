// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resources builds the Kubernetes objects of an EtcdCluster: pods, volume
// claims, services and the disruption budget. It is pure: the same cluster and
// member always give the same object, and nothing here reads a clock, a cluster or
// a secret. It may import the API types and Kubernetes' types. No container has a
// shell; whatever a user writes stays inside one element of an argument list. The
// golden files in testdata show what comes out. Start at pod.go.
package resources
