// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prober probes the members of a cluster from inside the API server, so that
// /health and /members need no controller. It reads pods, PVCs and the operator's Secret
// from Kubernetes and talks to etcd through pkg/etcd. Each probe is limited in time, and
// so is the number of probes at once. The package decides nothing: package health
// interprets the result. Start at prober.go.
package prober
