// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// maxSeedPause is how long a restore rests at most between two seeds.
const maxSeedPause = 10 * time.Minute

// seedRecovery fills the seed and waits until it serves.
func seedRecovery(o *Observed, r *v1beta2.RecoveryStatus) (Plan, bool) {
	restores := r.Trigger == v1beta2.RecoveryTriggerRestore
	switch {
	case r.Cancelled:
		return abandon(o, r, "it was cancelled"), true
	case o.size() == 0:
		return abandon(o, r, "the cluster is declared to have no members"), true
	case !restores && o.Etcd.Linearizable:
		return abandon(o, r, "a quorum of the members answers again"), true
	}
	if o.seedPauses(r) {
		return wait(recheckWaiting, "WaitingForSeed",
			"the new first member "+r.Seed+" has ended"+waitingFor(o.Reseed.Pod)+"; the next one is made after a while",
			"give it what it lacked: another one is made at once when the spec changes"), !o.bootstrapped()
	}
	if why := o.seedUnfit(r); why != "" {
		next := r.DeepCopy()
		next.Phase, next.Message = v1beta2.RecoveryPhasePending, why
		return Plan{Actions: []Action{DropSeed{Name: r.Seed}, RecordRecovery{Recovery: *next}}, RequeueAfter: recheckWaiting}, true
	}
	switch {
	case o.Reseed.Pod == nil:
		return Plan{Actions: []Action{CreateReseed{Recovery: *r}}, RequeueAfter: recheckWaiting}, true
	case o.Reseed.Serves && hexID(o.Reseed.ClusterID) != r.OldClusterID:
		if silent := o.silentPods(); silent != "" {
			return wait(recheckWaiting, v1beta2.ReasonOldMemberMayRun,
				"the new first member "+r.Seed+" is ready, and the old members are not replaced yet: "+silent,
				"Bring the node back. "+confirmOff), true
		}
		next := r.DeepCopy()
		next.Phase, next.ClusterID, next.Message = v1beta2.RecoveryPhaseSwitching, hexID(o.Reseed.ClusterID), ""
		next.OldMembers = o.oldMembers(r)
		return Plan{Actions: []Action{ProveWrite{Hidden: true}, RecordRecovery{Recovery: *next}}, RequeueAfter: recheckWaiting}, true
	case restores && o.bootstrapped():
		return Plan{}, false // the cluster lives on meanwhile
	}
	plan := o.waitForSeed(r)
	if back, spoke := ruleReturn(o); spoke {
		plan.Actions = back.Actions // a quorum that can come back shall
	} else if mend, spoke := ruleMend(o); spoke {
		plan.Actions = mend.Actions // and so where a declaration has cost it that was corrected
	}
	return plan, true
}

// waitForSeed says what keeps the seed from serving. One whose source is gone may have been
// filled before, and then it holds the only copy. Nobody but a person may give that up, by
// deleting its pod.
func (o *Observed) waitForSeed(r *v1beta2.RecoveryStatus) Plan {
	message := "the new first member " + r.Seed + " does not serve yet" + waitingFor(o.Reseed.Pod)
	if o.refills(r) || o.source("") != nil {
		return wait(recheckQuorum, "WaitingForSeed", message, "nothing, unless it lasts")
	}
	if o.there(r.Source.Member) {
		return wait(recheckQuorum, "WaitingForSeed", message+"; member "+r.Source.Member+", from which it is filled, does not answer",
			"nothing, if that member comes back; "+giveUp(r))
	}
	return wait(recheckQuorum, "SourceLost",
		message+"; member "+r.Source.Member+", from which it was to be filled, is gone with its data, and no other one answers",
		"nothing, if another member answers again: then it begins anew from that; "+giveUp(r))
}

// giveUp says how a person ends a recovery that cannot go on.
func giveUp(r *v1beta2.RecoveryStatus) string {
	return "to give the recovery up, delete pod " + r.Seed + ": what is left of the old members is kept, and a backup can be restored with an EtcdRestore"
}

// seedPauses is true while a seed that Kubernetes has ended, such as for what it took of
// the disk of its node, is not made again: each fetches the whole backup, and what has
// ended one may end the next. The first is followed at once, later ones the later the
// longer it has gone on; another declaration may help, so it is tried at once.
func (o *Observed) seedPauses(r *v1beta2.RecoveryStatus) bool {
	p := o.Reseed.Pod
	if r.Trigger != v1beta2.RecoveryTriggerRestore || p == nil || !p.Finished || p.Terminating || p.Outdated || o.stale(p) {
		return false
	}
	pause := min(p.Made.Sub(r.RequestedAt.Time)/2, maxSeedPause)
	// A clock that was set back does not make it longer.
	age := o.Now.Sub(p.Made)
	return age >= 0 && age < pause
}

// seedUnfit says why the seed must be made anew, from what is there now; empty if it
// need not.
func (o *Observed) seedUnfit(r *v1beta2.RecoveryStatus) string {
	if p := o.Reseed.Pod; p.gone() && p != nil {
		return "the new first member " + r.Seed + " was taken away" + waitingFor(p)
	}
	if o.Reseed.Pod == nil && o.claim(r.Seed) == nil && !o.refills(r) {
		return "member " + r.Source.Member + " does not answer any more, and nothing was taken from it yet"
	}
	if o.seedOutdated() && o.refills(r) {
		return "the new first member " + r.Seed + " does not run as it was declared, and is declared otherwise now"
	}
	best := o.source("")
	if r.Trigger == v1beta2.RecoveryTriggerRestore || best == nil {
		return ""
	}
	source := o.source(r.Source.Member)
	switch {
	case source != nil && signed(source.RaftIndex) > r.Source.RaftIndex:
		return "member " + source.Name + " has gone on meanwhile"
	case r.Member != "":
		return ""
	case signed(best.RaftIndex) > r.Source.RaftIndex:
		return "member " + best.Name + " answers and has lost less"
	case source == nil && !o.Reseed.Serves && o.pod(r.Source.Member).gone():
		return "member " + r.Source.Member + " is gone"
	default:
		return ""
	}
}

// seedOutdated is true for a seed that does not run and was made from another declaration
// than the one of now. Its etcd may never start; nothing in a pod says whether it would.
func (o *Observed) seedOutdated() bool {
	p := o.Reseed.Pod
	return !p.gone() && !p.Running && (p.Outdated || o.stale(p))
}

// refills is true while what the seed is filled from is still there. Where it is not, the
// seed may hold the only copy.
func (o *Observed) refills(r *v1beta2.RecoveryStatus) bool {
	return r.Trigger == v1beta2.RecoveryTriggerRestore || o.source(r.Source.Member) != nil
}
