// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// recoveryGrace is how long a permanent loss of the quorum must have been proven before
	// a cluster with automatic recovery goes on without it: a person who has just deleted
	// pods may still look at them.
	recoveryGrace = 30 * time.Second
	// sourceGrace is how long a recovery that was asked for waits for the member that it
	// shall go on from to answer.
	sourceGrace = time.Minute
	// revisionBump is far more than a cluster writes in the time that may be lost.
	revisionBump = 1_000_000_000
)

// ruleRecovery lets the data of a cluster go on in new members, from a survivor of a
// lost quorum or from a backup. A new first member, the seed, is filled and must serve
// a write out of everybody's sight; up to then nothing is touched that exists. Then
// the old members go out of service, and only after that the seed is let in, so that
// clients never see both. The record on the peer service says how far it has come.
func ruleRecovery(o *Observed) (Plan, bool) {
	r := o.recovery()
	if r.InProgress() && o.PeerService.Recovery == nil && r.Phase != v1beta2.RecoveryPhasePending {
		return o.recordAgain(r), true
	}
	if !r.InProgress() {
		if r = o.firstAid(); r == nil {
			return lastAid(o)
		}
	}
	switch r.Phase {
	case v1beta2.RecoveryPhasePending:
		return startRecovery(o, r), true
	case v1beta2.RecoveryPhaseSeeding:
		return seedRecovery(o, r)
	case v1beta2.RecoveryPhaseSwitching:
		return switchLineage(o, r), true
	case v1beta2.RecoveryPhaseCleaning:
		return cleanLineage(o, r)
	case v1beta2.RecoveryPhaseSucceeded, v1beta2.RecoveryPhaseAbandoned:
		return Plan{}, false
	default:
		return Plan{}, false
	}
}

// recovery returns the recovery that counts, or nil. What stands on the peer service
// is newer than the status, but for a new request and a cancellation.
func (o *Observed) recovery() *v1beta2.RecoveryStatus {
	record, said := o.PeerService.Recovery, o.Cluster.Status.Recovery
	switch {
	case record == nil:
		return said
	case said == nil || record.InProgress() && said.ID != record.ID:
		return record
	case said.ID != record.ID && said.Phase == v1beta2.RecoveryPhasePending:
		return said
	default:
		r := record.DeepCopy()
		r.Cancelled = r.Cancelled || (said.ID == r.ID && said.Cancelled)
		return r
	}
}

// recordAgain puts the record back that somebody wiped, unless the cluster has gone on
// without this recovery: then the status is of an earlier time than the cluster.
func (o *Observed) recordAgain(r *v1beta2.RecoveryStatus) Plan {
	id := o.PeerService.ClusterID
	known := id == "" || id == unknownClusterID || id == r.OldClusterID || id == r.ClusterID
	if answers := hexID(o.Etcd.ClusterID); o.Etcd.Linearizable && answers != r.OldClusterID && answers != r.ClusterID {
		known = false
	}
	if o.pod(r.Seed) != nil || o.claim(r.Seed) != nil {
		// It was let in. Nothing but the end is left to do, and nobody may be retired again.
		known = known && r.Phase == v1beta2.RecoveryPhaseCleaning
	}
	if !known {
		return abandon(o, r, "the cluster has gone on otherwise since then")
	}
	return Plan{Actions: []Action{RecordRecovery{Recovery: *r.DeepCopy()}}, RequeueAfter: recheckWaiting}
}

// firstAid returns a recovery that nobody needs to ask for, or nil: the spec allows it,
// and the quorum has been lost for good for a while.
func (o *Observed) firstAid() *v1beta2.RecoveryStatus {
	if !o.recoversNow() || o.source("") == nil {
		return nil
	}
	return &v1beta2.RecoveryStatus{
		ID: o.NewName, Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhasePending,
		RequestedAt: metav1.NewTime(o.Now.Truncate(time.Second)),
	}
}

// recoversByItself is true if the spec allows it.
func (o *Observed) recoversByItself() bool {
	policy := o.Cluster.Spec.Recovery
	return policy != nil && policy.QuorumLoss == v1beta2.RecoveryAutomatic
}

// recoversNow is true if the cluster may be recovered now without being asked.
func (o *Observed) recoversNow() bool {
	if !o.recoversByItself() || !o.permanentlyLost() {
		return false
	}
	since := o.Cluster.Status.PermanentQuorumLossSince
	return since != nil && o.Now.Sub(since.Time) >= recoveryGrace
}

// survivors returns the members that answer, the one that has committed most first.
// Of equals a voter comes first, then the name decides.
func (o *Observed) survivors() []*Member {
	var list []*Member
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.RaftIndex > 0 && !o.pod(m.Name).gone() {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b *Member) int {
		switch {
		case a.RaftIndex != b.RaftIndex:
			if a.RaftIndex > b.RaftIndex {
				return -1
			}
			return 1
		case a.Learner != b.Learner:
			if b.Learner {
				return -1
			}
			return 1
		case a.Name < b.Name:
			return -1
		default:
			return 1
		}
	})
	return list
}

// source returns the survivor to go on from: the one that was asked for, or the one
// that has lost the least; nil if it does not answer.
func (o *Observed) source(wanted string) *Member {
	for _, m := range o.survivors() {
		if wanted == "" || m.Name == wanted {
			return m
		}
	}
	return nil
}

// startRecovery makes the plan and records it. Nothing else happens before it stands
// on the peer service.
func startRecovery(o *Observed, r *v1beta2.RecoveryStatus) Plan {
	next := r.DeepCopy()
	// The message stays: it says why there is another seed.
	next.Phase, next.Seed, next.ClusterID = v1beta2.RecoveryPhaseSeeding, o.NewName, ""
	next.OldMembers, next.OldClusterID = o.everyName(), o.PeerService.ClusterID
	if next.OldClusterID == unknownClusterID {
		next.OldClusterID = o.knownClusterID()
	}
	switch {
	case r.Cancelled:
		return abandon(o, r, "it was cancelled")
	case o.repeats(r):
		return abandon(o, r, "it was carried out before, and the cluster has gone on since then: the API was brought back from an earlier time")
	case o.size() == 0:
		return abandon(o, r, "the cluster is declared to have no members")
	case !o.concerns(r):
		return abandon(o, r, "it is about members that this cluster has no more")
	case r.Trigger == v1beta2.RecoveryTriggerRestore:
		return Plan{Actions: []Action{RecordRecovery{Recovery: *next}}, RequeueAfter: recheckWaiting}
	case o.Etcd.Linearizable:
		return abandon(o, r, "a quorum of the members answers")
	}
	source := o.source(r.Member)
	if source == nil {
		if o.Now.Sub(r.RequestedAt.Time) > sourceGrace {
			return abandon(o, r, "no member answers that it could go on from")
		}
		return wait(recheckQuorum, "WaitingForSurvivor", "no member answers that the cluster could go on from", "nothing, unless it lasts")
	}
	next.Source.Member, next.Source.RaftIndex = source.Name, signed(source.RaftIndex)
	next.Version = o.Cluster.Spec.Version
	if v := o.runs(source); v != nil {
		next.Version = v.String()
	}
	if resources.BumpsRevision(next.Version) {
		next.RevisionBump = revisionBump
	}
	next.Survivors = nil
	for _, m := range o.survivors() {
		next.Survivors = append(next.Survivors, v1beta2.RecoverySurvivor{Name: m.Name, RaftIndex: signed(m.RaftIndex), DBSize: m.DBSize})
	}
	next.ExpectedLoss = o.expectedLoss(source)
	if back := resources.RevisionGoesBack(next.Version); back != "" {
		next.ExpectedLoss += "; " + back
	}
	action := RecordRecovery{Recovery: *next}
	if r.Trigger == v1beta2.RecoveryTriggerAutomatic {
		action.Lost = o.lostVoters()
	}
	return Plan{Actions: []Action{action}, RequeueAfter: recheckWaiting}
}

// signed is an index as the API holds it.
func signed(index uint64) int64 { return int64(min(index, math.MaxInt64)) }

// concerns is false for a request about members of another time: the API may have been
// restored from a backup of its own.
func (o *Observed) concerns(r *v1beta2.RecoveryStatus) bool {
	if len(r.OldMembers) == 0 {
		return true
	}
	return slices.ContainsFunc(r.OldMembers, func(name string) bool { return slices.Contains(o.everyName(), name) })
}

// repeats is true for a request that was begun before, and that others have followed: the
// API may have been restored from a backup of its own. To carry it out again would put
// older data in the place of newer.
func (o *Observed) repeats(r *v1beta2.RecoveryStatus) bool {
	record := o.PeerService.Recovery
	return (record == nil || record.ID != r.ID) && slices.Contains(o.PeerService.Recoveries, r.ID)
}

// everyName returns the names of all members, and of whatever else the cluster has.
func (o *Observed) everyName() []string {
	list := o.remains()
	for i := range o.Etcd.Members {
		list = append(list, o.Etcd.Members[i].Name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// oldMembers returns the names of all that a recovery takes out of service: who was there
// when it began, and who has joined since, because a cluster lives on while it is restored.
func (o *Observed) oldMembers(r *v1beta2.RecoveryStatus) []string {
	list := append(o.everyName(), r.OldMembers...)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(name string) bool { return name == r.Seed })
}

// expectedLoss says what a new cluster that goes on from source will not have.
func (o *Observed) expectedLoss(source *Member) string {
	text := fmt.Sprintf("writes that %s had not applied at raft index %d: at most those that were acknowledged in the moment before the quorum was lost",
		source.Name, source.RaftIndex)
	for _, m := range o.voters() {
		if m.RaftIndex == 0 && (o.claim(m.Name) != nil || o.pod(m.Name) != nil) {
			text += fmt.Sprintf("; member %s does not answer and may hold newer ones", m.Name)
		}
	}
	if best := o.source(""); best != nil && best.RaftIndex > source.RaftIndex {
		text += fmt.Sprintf("; and %d raft entries that %s has and %s has not", best.RaftIndex-source.RaftIndex, best.Name, source.Name)
	}
	return text
}

// switchLineage takes the old members out of service. The seed is hidden until all of
// them are.
func switchLineage(o *Observed, r *v1beta2.RecoveryStatus) Plan {
	if p := o.Reseed.Pod; p == nil && o.seedLost(r) {
		next := r.DeepCopy()
		next.Phase, next.CompletionTime = v1beta2.RecoveryPhaseAbandoned, o.nowTime()
		next.Message = "the new first member " + r.Seed + " was lost before it was let in, and nothing is left that it could be filled from"
		return Plan{Actions: []Action{RecordRecovery{Recovery: *next, Gone: r.Seed}}, RequeueAfter: recheckWaiting}
	} else if p == nil {
		// Nobody but the controller has written to it, so it may start from its source
		// again if its disk went with it.
		return Plan{Actions: []Action{CreateReseed{Recovery: *r}}, RequeueAfter: recheckWaiting}
	} else if (p.Finished && !p.Terminating) || (o.seedOutdated() && (o.persistent() || o.refills(r))) {
		return Plan{Actions: []Action{DeletePod{Name: p.Name, UID: p.UID}}, RequeueAfter: recheckWaiting}
	}
	if !o.Reseed.Serves || hexID(o.Reseed.ClusterID) != r.ClusterID {
		return wait(recheckQuorum, "WaitingForSeed",
			"the new first member "+r.Seed+" does not serve"+waitingFor(o.Reseed.Pod), "nothing, unless it lasts")
	}
	next := r.DeepCopy()
	next.Phase, next.Message = v1beta2.RecoveryPhaseCleaning, ""
	next.OldMembers = o.oldMembers(r)
	return Plan{Actions: []Action{Retire{Recovery: *r}, RecordRecovery{Recovery: *next}}, RequeueAfter: recheckWaiting}
}

// seedLost is true if the data was in the pod of the seed only, which is gone, and so are the
// old members that it came from. Where there are volumes a person may find it on those.
func (o *Observed) seedLost(r *v1beta2.RecoveryStatus) bool {
	return !o.persistent() && !o.Reseed.Hidden && o.claim(r.Seed) == nil && !o.refills(r) && len(o.remains()) == 0
}

// cleanLineage lets the seed in and gives the volumes of the old members up once the
// new cluster has served a write.
func cleanLineage(o *Observed, r *v1beta2.RecoveryStatus) (Plan, bool) {
	if o.Reseed.Hidden {
		return Plan{Actions: []Action{Reveal{Name: r.Seed}}, RequeueAfter: recheckNow}, true
	}
	next := r.DeepCopy()
	if !o.Etcd.Linearizable && o.pod(r.Seed).gone() && o.claim(r.Seed) == nil && o.quorumLoss().forGood {
		next.Phase, next.CompletionTime = v1beta2.RecoveryPhaseSucceeded, o.nowTime()
		next.Message = "the new members were lost before the volumes of the old ones were given up; those are kept"
		return Plan{Actions: []Action{RecordRecovery{Recovery: *next}}, RequeueAfter: recheckNow}, true
	}
	if !o.Etcd.Linearizable || hexID(o.Etcd.ClusterID) != r.ClusterID {
		return Plan{}, false // it is looked after as every cluster is
	}
	next.Phase, next.Message = v1beta2.RecoveryPhaseSucceeded, ""
	next.CompletionTime = o.nowTime()
	return Plan{Actions: []Action{ProveWrite{}, DropRetired{Recovery: *r}, RecordRecovery{Recovery: *next}}, RequeueAfter: recheckNow}, true
}

// abandon ends a recovery and leaves the old members as they are.
func abandon(o *Observed, r *v1beta2.RecoveryStatus, why string) Plan {
	next := r.DeepCopy()
	next.Phase, next.Message, next.CompletionTime = v1beta2.RecoveryPhaseAbandoned, why, o.nowTime()
	actions := []Action{RecordRecovery{Recovery: *next}}
	if r.Seed != "" {
		actions = append([]Action{DropSeed{Name: r.Seed}}, actions...)
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}
}

func (o *Observed) nowTime() *metav1.Time {
	t := metav1.NewTime(o.Now.Truncate(time.Second))
	return &t
}

func hexID(id uint64) string { return strconv.FormatUint(id, 16) }

// describeRecovery says for a reader what goes on.
func describeRecovery(r *v1beta2.RecoveryStatus) string {
	from := "member " + r.Source.Member
	if r.Trigger == v1beta2.RecoveryTriggerRestore {
		from = "EtcdRestore " + r.Source.Restore
	}
	text := "the cluster goes on from " + from
	if r.Seed != "" {
		text += " in the new member " + r.Seed
	}
	if r.RequestedBy != "" {
		text += ", as requested by " + r.RequestedBy
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}
