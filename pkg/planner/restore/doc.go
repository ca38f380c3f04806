// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore decides what is done about one EtcdRestore: when its backup is looked
// at, whether the cluster can take it, when the cluster is asked to go on from it, and
// what the status says of all that. It is pure: the same observation always gives the
// same plan, and the time is part of the observation.
//
// A Job first reads the backup and checks it against what it shall be restored into;
// nothing else has happened by then. The Job stays, with its result in the termination
// message of its pod, until the cluster has been asked: the request holds all that is
// known of the backup. It is a recovery in the status of the EtcdCluster, which
// pkg/planner/cluster carries out beside the members that are there; its ID is the UID of
// the EtcdRestore, so that it is made once however often that is decided. What came of it
// is read from there. Start at Decide in plan.go.
package restore
