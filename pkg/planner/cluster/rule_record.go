// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ruleRecord creates the record before anything else of the cluster, and completes one that
// has lost something. Nothing goes on meanwhile: each later rule relies on the record.
func ruleRecord(o *Observed) (Plan, bool) {
	complete := completeRecord(o)
	if o.Record.State != Missing && complete.Equal(o.Record.Record) {
		return Plan{}, false
	}
	actions := []Action{WriteRecord{Record: complete}}
	if o.PeerService == Missing {
		actions = append(actions, CreatePeerService{})
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}, true
}

// completeRecord returns the record with what is missing from it, as members, pods, PVCs
// and the status tell it. A record from which nothing is missing stays as it is.
func completeRecord(o *Observed) resources.Record {
	r := o.Record.Record
	r.Recoveries = resources.MergeRecoveries(witnessedRecoveries(&o.Witnesses), r.Recoveries)
	r.Restores = resources.RecordedRestores(toldRestores(o))
	if r.Recovery == nil {
		r.Recovery = witnessedRecovery(&o.Witnesses, o.Cluster.Status.Recovery)
		if r.Recovery != nil {
			r.Recoveries = resources.MergeRecoveries(r.Recoveries, []string{r.Recovery.ID})
		}
		if r.Recovery != nil && r.Recovery.Phase == v1beta2.RecoveryPhaseCleaning {
			r.BootstrapMember = r.Recovery.RecoveryMember
		}
	}
	switch {
	case r.ClusterID != "":
	case hasBegun(o) && o.Etcd.Unlisted:
		r.ClusterID = unknownClusterID
	case hasBegun(o):
		r.ClusterID = knownClusterID(o.Etcd.ClusterID)
	default:
		r.BootstrapMember = o.BootstrapName
	}
	return r
}

// hasBegun is true if the cluster was bootstrapped, or anything exists of a member other
// than the bootstrap member, which joined after that.
func hasBegun(o *Observed) bool {
	return isBootstrapped(o) || slices.ContainsFunc(diagnosisInput(o).Remains(), func(name string) bool { return name != o.BootstrapName })
}

// witnessedRecovery returns the last recovery if the record does not have it: as the
// recovery member says it, or as the status does if that is newer; nil if neither shows one.
// What only the status shows as under way is for the rule for recoveries to judge.
func witnessedRecovery(witnesses *Witnesses, reported *v1beta2.RecoveryStatus) *v1beta2.RecoveryStatus {
	said := reported
	if said != nil && said.Phase == v1beta2.RecoveryPhasePending {
		said = nil // it has not begun
	}
	witness := recoveryWitness(witnesses, said)
	switch {
	case witness == nil && said != nil && !said.IsInProgress():
		return said.DeepCopy()
	case witness == nil:
		return nil
	}
	r := witness.Recovery.DeepCopy()
	if !witness.Hidden {
		r.Phase = v1beta2.RecoveryPhaseCleaning // it is published last
	}
	if said == nil || said.ID != r.ID {
		return r
	}
	// No attempt follows the end. A member of an earlier attempt may have been created late.
	if !said.IsInProgress() || said.RecoveryMember == r.RecoveryMember && phaseOrder(said.Phase) >= phaseOrder(r.Phase) {
		return said.DeepCopy()
	}
	return r
}

// witnessedRecoveries returns the IDs of the recoveries that pods and PVCs know. A recovery
// member that is not hidden was there first.
func witnessedRecoveries(witnesses *Witnesses) []string {
	list := witnesses.Recoveries
	for _, hidden := range []bool{false, true} {
		for i := range witnesses.RecoveryMembers {
			if w := &witnesses.RecoveryMembers[i]; w.Hidden == hidden {
				list = resources.MergeRecoveries(list, []string{w.Recovery.ID})
			}
		}
	}
	return list
}

// recoveryWitness returns the recovery member of the recovery that has begun last, or nil.
// One of an earlier recovery tells nothing: that recovery is over.
func recoveryWitness(witnesses *Witnesses, said *v1beta2.RecoveryStatus) *RecoveryWitness {
	began := witnessedRecoveries(witnesses)
	if said != nil {
		began = resources.MergeRecoveries(began, []string{said.ID})
	}
	var found *RecoveryWitness
	for i := range witnesses.RecoveryMembers {
		w := &witnesses.RecoveryMembers[i]
		if w.Recovery.ID != began[len(began)-1] {
			continue
		}
		if found == nil || found.Hidden && !w.Hidden || said != nil && w.Recovery.RecoveryMember == said.RecoveryMember {
			found = w
		}
	}
	return found
}

// phaseOrder orders the phases of one recovery member.
func phaseOrder(phase v1beta2.RecoveryPhase) int {
	return slices.Index([]v1beta2.RecoveryPhase{
		v1beta2.RecoveryPhasePending, v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryPhaseCutover, v1beta2.RecoveryPhaseCleaning,
		v1beta2.RecoveryPhaseSucceeded, v1beta2.RecoveryPhaseAbandoned,
	}, phase)
}
