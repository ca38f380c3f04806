// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnosis derives from the facts about one cluster what is wrong with it. It
// derives:
//   - the state of each member.
//   - the quorum and its fault tolerance.
//   - whether a lost quorum can come back.
//   - which member a recovery uses as its source, and which data that recovery may lose.
//
// The controller's planner and the API server both use it, so that /health and
// /recover?dryRun=All show what the controller does. Each converts what it knows into a
// Cluster. The package is pure: it may import the API types and the standard library,
// never a client, a clock or a logger.
//
// Start at cluster.go. The other files are:
//   - quorum.go: the arithmetic.
//   - evidence.go: what proves that a pod has ended.
//   - state.go: the states of members.
//   - vote.go: which members vote.
//   - loss.go: the diagnosis of a quorum that could not be read.
//   - unseen.go: members that may serve as a quorum without being seen.
//   - returning.go: members that may bring the quorum back when their pods start.
//   - unstored.go: writes that a restore might lose.
//   - volume.go: the volume of a survivor as the source, if no member responds.
//   - source.go: the choice of a recovery source and its estimated data loss.
//   - remediation.go: the advice.
package diagnosis
