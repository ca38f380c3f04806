// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs the real controller (pkg/controller/cluster with the real
// planner) in a simulated world and looks for broken rules after every step.
//
// Each package below has one subject, and imports only those before it:
//
//	timeline    virtual time, dice, the record of a run
//	schedules   stories: a cluster and what happens to it
//	etcd        members, their logs and their data
//	kubernetes  the API, caches, nodes, pods and volumes
//	clients     programs that write, requests for backups and recoveries
//	manager     processes of the controller, their calls and what can go wrong with one
//	checks      the rules of docs/explanation/safety-rules.md, and what a cluster must come to
//	faults      what breaks and what people do; the whole world
//
// There are three ways to play it. A Schedule is a random story with faults (run.go). A
// phase (phases.go, cuts.go) is one thing that is done to a cluster, played once for every
// call of the controller that can be cut. A Variant (variant.go) is a controller with a
// known mistake, which must be noticed (bugs_*_test.go).
//
// Start at run.go.
package simulation
