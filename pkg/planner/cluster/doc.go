// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster decides what to do next about one EtcdCluster. Decide takes an
// observation and returns a plan: actions, a reason to wait, or nothing. Status turns the
// same observation into the status of the object. The package is pure: the same observation
// yields the same plan. The safety rules of docs/explanation/safety-rules.md are kept here, and the
// simulation checks them after every step.
//
// It imports the API types with their validation, package resources, which knows what the
// objects of a cluster look like, and types and version arithmetic of Kubernetes. Package
// diagnosis derives for it what is wrong with a cluster. Package certificates decides about
// certificates, and package recovery about recoveries. It never imports a client, reads a clock
// or writes a log.
//
// The chapters, in reading order:
//
//   - observed.go and observed_etcd.go hold what is observed. These types have no methods.
//   - Facts come next; each function takes only what it needs. objects.go finds pods and PVCs,
//     membership.go reads the member list of etcd, and quorum.go counts the voters that serve.
//     desired.go is about the spec, reported.go about the last status, bootstrapped.go about
//     whether the cluster has served, and certificate_input.go about certificates. started.go says
//     which pods and PVCs members have used.
//     member_versions.go says what runs, and upgrade_path.go what may follow. versions.go
//     compares versions of etcd, and cluster_id.go writes IDs.
//   - Judgements follow. member_change.go says what must change of a member, away.go which member is
//     overdue, and cordon.go which member must leave its node. restarts.go says which member
//     restarts, and put_back.go whose image is put back. prepared.go says which pod joins next, and removal_candidate.go which voter goes.
//     diagnosis.go asks package diagnosis about a quorum, and loss.go since when it is lost.
//   - Rules and plans come last. A test checks that facts use no judgement, and that judgements
//     use no rule.
//   - action.go lists what can be done; reasons.go and wait.go say why the cluster waits.
//   - decide.go has the ordered list of rules, and rules.go has their names. The rule
//     "scale-up" is in rule_scale_up.go, and so on.
//   - removal.go removes a member from etcd, for several rules.
//   - drain.go drains its clients first; operation.go and operation_restart.go stop members.
//   - raft_log.go leads the log across a version that cannot read old entries.
//   - upkeep.go, upkeep_*.go and object_labels.go go along with every decision, as do
//     certificates.go and clients.go. certificates.go hands to package certificates what it
//     needs to know, and turns its steps into actions.
//   - rule_quorum.go waits for a lost quorum. rule_recovery.go asks package recovery, which
//     decides how the data of the cluster continues in new members.
//   - status.go, conditions.go, condition_*.go and ready.go make the status.
package cluster
