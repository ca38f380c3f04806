// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recovery decides how the data of one EtcdCluster continues in new members, from a
// survivor of a lost quorum or from a backup that is restored in place. Decide takes an Input
// and returns a Decision: the next step, and what the recovery waits for. The steps are:
//  1. A new member, the recovery member, is filled. It must serve a write while it is
//     hidden from clients and members. Until then nothing that exists is changed.
//  2. The old members are decommissioned.
//  3. Only then is the recovery member published, so that clients never see both.
//
// The record of the cluster holds the progress, as a RecoveryStatus. Package
// pkg/planner/cluster makes the Input from its observation, and its Actions from the Step.
//
// The package is pure: the same input always gives the same decision, and the time is part of
// the input. It may import the API types, package diagnosis and package resources, never
// pkg/planner/cluster.
//
// The files, in reading order:
//   - input.go: what a decision is made from.
//   - decision.go: the steps, and the reasons to wait.
//   - decide.go: which recovery counts, and how it begins and ends.
//   - fill.go: the recovery member until it serves.
//   - volume.go: the member whose volume is read stops first.
//   - cutover.go: the old members go, and the recovery member is published.
//   - restore.go: restores the last backup when nothing is left.
package recovery
