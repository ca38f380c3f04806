// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A lost quorum is proved lost for good by two independent witnesses. The last status
// says who voted; whoever may have been let vote since, and is not gone, is counted
// among those who are left. And each member that answers says by which list it would
// stand for election: none of them may find a quorum that can come back.

// View is what a member says of the membership by itself, while no list can be read
// through a quorum.
type View struct {
	// Learner is true if it has not heard that it votes.
	Learner bool
	// Members is the list as far as it has applied the log; nil if it could not be read.
	// Learners give none away.
	Members []Member
}

// ended is true if there is evidence that no member runs in the pod. A kubelet reports the
// phase Failed or Succeeded only after all containers have ended, and removes the pod after
// that. For an unresponsive node Kubernetes does either only after a person has deleted the
// Node, tainted it as out of service, or forced the deletion.
// That a deletion was requested is no evidence.
func (p *Pod) ended() bool { return p == nil || p.Finished }

// there is true unless a member has ended and its data is gone.
func (o *Observed) there(name string) bool {
	return !o.pod(name).ended() || o.claim(name) != nil
}

// unproved returns the pods that are about to end and have not said that they have: their
// members may still have a quorum among them, and acknowledge writes.
func (o *Observed) unproved() []*Pod {
	var list []*Pod
	for _, m := range o.electorate() {
		if p := o.pod(m.Name); p != nil && p.Terminating && !p.Finished && o.claim(m.Name) == nil {
			list = append(list, p)
		}
	}
	return list
}

// silentPods says which pods should have ended and have not, because their nodes do not
// answer; empty if there are none.
func (o *Observed) silentPods() string {
	var list []string
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && p.Terminating && !p.ended() && o.Now.Sub(p.EndsBy) > silentAfter {
			list = append(list, p.mayRun())
		}
	}
	return strings.Join(list, ", and ")
}

// silentAfter is how long after its time a pod has not ended until its node counts as silent.
const silentAfter = 5 * time.Second

// mayRun says what is missing for the proof that a pod has ended.
func (p *Pod) mayRun() string {
	return "pod " + p.Name + " is being deleted, and its node " + p.Node + " has not reported that it has ended"
}

// confirmOff is how a person gives Kubernetes the evidence that a node cannot give.
const confirmOff = "If the node is switched off permanently, delete its Node object or taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"

// wasVoter is true for a member that is known to have voted.
func wasVoter(m *Member) bool {
	return m.Started && !m.Learner || m.View != nil && !m.View.Learner
}

// mayVote is true for a member that is not known to have voted, and that may have been let
// vote since. A learner is promoted only after a status has said that it has started; a
// member of an etcd that knows no learners votes from the beginning.
func (o *Observed) mayVote(m *Member) bool {
	switch {
	case wasVoter(m) || m.View != nil || !o.there(m.Name):
		return false
	case m.Started:
		return true
	default:
		return !m.Learner && !o.knowsLearners()
	}
}

// electorate returns the members that are counted when nobody can be asked through a
// quorum: those that are known to have voted and those that may vote by now.
func (o *Observed) electorate() []*Member {
	var known, list []*Member
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if wasVoter(m) {
			known = append(known, m)
		}
		if wasVoter(m) || o.mayVote(m) {
			list = append(list, m)
		}
	}
	if len(known) == 0 {
		return o.voters() // a status that knows nobody who has started
	}
	return list
}

// unknownVoters returns the members whose pods say that they vote, and of whom the last
// status knows nothing. None is let vote before a status has named it, so this status is
// of an earlier time: the API may have been restored from a backup of its own.
func (o *Observed) unknownVoters() []string {
	var list []string
	for i := range o.Pods {
		p := &o.Pods[i]
		if !p.Owned || p.ended() || p.Role != PodVoter && p.Role != PodLeaving || o.recovery().InProgress() && p.Name == o.recovery().Seed {
			continue
		}
		if m := o.member(p.Name); m == nil || m.View == nil && !wasVoter(m) && !o.mayVote(m) {
			list = append(list, p.Name)
		}
	}
	return list
}

// doubts returns why a loss is not proved although those that are known to be left are no
// quorum of those that are known to have voted; empty if the proof is complete.
func (o *Observed) doubts() string {
	var reasons []string
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		switch {
		case m.RaftIndex == 0 && m.View == nil, m.View != nil && m.View.Learner, o.pod(m.Name).ended():
		case m.View == nil || len(m.View.Members) == 0:
			reasons = append(reasons, "the member list of "+m.Name+" could not be read")
		case m.View.resumes(o):
			reasons = append(reasons, "by the member list of "+m.Name+" enough voters are left")
		}
	}
	if unknown := o.unknownVoters(); len(unknown) > 0 {
		reasons = append(reasons, "the last status is older than "+strings.Join(unknown, ", ")+", which may vote and have newer data")
	}
	return strings.Join(reasons, ", and ")
}

// resumes is true if those that are left of a list are a quorum of it.
func (v *View) resumes(o *Observed) bool {
	voters, left := 0, 0
	for i := range v.Members {
		m := &v.Members[i]
		if m.Learner {
			continue
		}
		voters++
		if m.Stranger || o.there(m.Name) {
			left++
		}
	}
	return left >= quorum(voters)
}

// undecided returns the members on whose vote it depends whether a loss is one for good:
// without it, those that are left are no quorum.
func (o *Observed) undecided() []*Member {
	var list []*Member
	voters, left := 0, 0
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		switch {
		case wasVoter(m):
			voters++
			if o.there(m.Name) {
				left++
			}
		case o.mayVote(m):
			list = append(list, m)
		}
	}
	if left >= quorum(voters) {
		return nil
	}
	return list
}

// lostVoters returns the voters that are gone with their data, by any list.
func (o *Observed) lostVoters() []string {
	var list []string
	add := func(members []Member) {
		for i := range members {
			if m := &members[i]; !m.Learner && !o.there(m.Name) {
				list = append(list, m.Name)
			}
		}
	}
	add(o.Etcd.Members)
	for i := range o.Etcd.Members {
		if v := o.Etcd.Members[i].View; v != nil {
			add(v.Members)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// permanentlyLost is true while it is proven that the quorum cannot come back.
func (o *Observed) permanentlyLost() bool {
	return !o.Etcd.Linearizable && o.bootstrapped() && o.size() != 0 && o.quorumLoss().forGood
}

// permanentLossSince returns since when the loss is proven without a break; nil while it is
// not. The time is that of the status in which it was first written, so that another
// controller goes on counting from it. Rounding is up: no recovery begins too soon.
func (o *Observed) permanentLossSince() *metav1.Time {
	if !o.permanentlyLost() {
		return nil
	}
	if since := o.Cluster.Status.PermanentQuorumLossSince; since != nil {
		return since.DeepCopy()
	}
	now := metav1.NewTime(o.Now.Add(time.Second - time.Nanosecond).Truncate(time.Second))
	return &now
}

// untilRecovery is how long to wait for the next look at a permanent loss.
func (o *Observed) untilRecovery() time.Duration {
	since := o.permanentLossSince()
	if since == nil || !o.recoversByItself() {
		return recheckSteady
	}
	return min(recheckSteady, max(recheckQuorum, since.Add(recoveryGrace).Sub(o.Now)))
}
