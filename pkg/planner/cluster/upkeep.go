// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// upkeep returns the actions that keep the services and the budget right. They
// touch no member, so they go along with whatever else is done.
func upkeep(o *Observed, plan Plan) []Action {
	if !keepsUp(o, plan) {
		return nil
	}
	var actions []Action
	if r, begins := nextRound(o); begins && o.Record.State == Current && plan.Rule != RuleRecovery && plan.Rule != RuleCertificates && plan.Rule != RuleRecord {
		actions = append(actions, RecordPutBack{PutBack: r})
	}
	if o.PeerService == Drifted {
		actions = append(actions, RepairPeerService{})
	}
	if o.Record.State == Current && o.Record.ClusterID == unknownClusterID && o.Etcd.Linearizable {
		// The record was created again while no member responded.
		actions = append(actions, RecordBootstrap{ClusterID: o.Etcd.ClusterID})
	}
	if o.Record.State == Current && o.Record.Undeclared {
		actions = append(actions, RecordDeclaration{})
	}
	if n := corruptVoters(o); n != o.Record.CorruptVoters && o.Record.State == Current && o.Etcd.Linearizable {
		actions = append(actions, RecordCorruptVoters{Voters: n})
	}
	if o.Record.State == Current && o.Record.Unwritten != "" && o.Etcd.Linearizable && writesRejected(o) == nil &&
		!slices.ContainsFunc(o.Etcd.Members, func(m Member) bool { return hexID(m.ID) == o.Record.Unwritten }) {
		actions = append(actions, WriteRemoval{})
	}
	if awaitsRestore(o.Cluster) && isReportedServed(o.Cluster.Status.Phase) && !recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery).IsInProgress() {
		actions = append(actions, ForgetRestore{})
	}
	if o.ClientService == Drifted || (o.ClientService == Missing && isReportedServed(o.Cluster.Status.Phase)) {
		actions = append(actions, EnsureClientService{})
	}
	actions = append(actions, upkeepBudget(o, plan)...)
	actions = append(actions, upkeepRecoveryBudget(o, plan)...)
	actions = append(actions, upkeepPVCs(o)...)
	actions = append(actions, upkeepRoles(o, plan)...)
	actions = append(actions, upkeepPrepared(o, plan)...)
	if plan.Wait != nil && o.Etcd.Linearizable {
		// Before it waits for ever: perhaps fewer members are lost than it seems.
		actions = append(actions, findLost(quorumOf(o), o.Record.BootstrapMember)...)
	}
	return actions
}

// keepsUp is true while services, PVCs and the budget are kept as they should be.
func keepsUp(o *Observed, plan Plan) bool {
	switch plan.Rule {
	case RuleDeleting, RulePaused, RuleNameConflict, RuleFoundVolumes:
		return false
	default:
		return isBootstrapped(o)
	}
}

// upkeepRoles labels the pods with what their members are, and those that do not say
// what they were made from, or which image was admitted. Voters that have joined have their data. Pods that need not
// stay out of the client Service any longer rejoin it. Without a quorum it does what admitStarted says.
func upkeepRoles(o *Observed, plan Plan) []Action {
	if !o.Etcd.Linearizable {
		return admitStarted(o)
	}
	var actions []Action
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		p := podByName(o.Pods, m.Name)
		if isGone(p) {
			continue
		}
		role := PodVoter
		switch {
		case m.Learner:
			role = PodLearner
		case staysOut(o, m, plan):
			role = PodDraining
		}
		joined := m.Started && !m.Learner
		unnoted := p.Image == resources.ImageUnnoted && o.Now.Sub(p.Made) < resources.NoteWithin
		due := p.Role != role || (p.Template == "" && o.Template != "") || joined && p.MayFill || p.Unadmitted || unnoted
		if due && !mayRestartBesideOthers(o, p) {
			actions = append(actions, LabelPod{Name: p.Name, UID: p.UID, Role: role, Joined: joined, Admit: p.Unadmitted})
		}
	}
	return actions
}
