// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health interprets a probe of the members of a cluster: Diagnose returns the
// verdict and the next steps, and DescribeMembers returns the membership as each member
// sees it. The package is pure: a Probe holds everything, its time included. It imports
// the API types, pkg/diagnosis, names of resources and the types of pkg/etcd. Start at
// diagnose.go; package prober makes Probes.
package health
