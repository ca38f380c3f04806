// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// View is what a member says of the membership by itself, while no list can be read
// through a quorum.
type View struct {
	// Learner is true if it has not heard that it votes.
	Learner bool
	// Members is the list as far as it has applied the log; nil if it could not be read.
	// Learners give none away.
	Members []Member
}

// evidence returns what is known about the end of a pod; nil is a pod that does not exist.
func (p *Pod) evidence() diagnosis.Evidence {
	if p == nil {
		return diagnosis.PodAbsent
	}
	return diagnosis.EvidenceFrom(p.Finished, p.Terminating)
}

// response returns what a member said when it was probed.
func (m *Member) response() diagnosis.Response {
	switch {
	case m.Health == Healthy:
		return diagnosis.FollowsLeader
	case m.Reason == ReasonNoLeader:
		return diagnosis.NoLeader
	case m.Reason == ReasonNotServing:
		return diagnosis.NoRead
	default:
		return diagnosis.NoResponse
	}
}

// Responds is true for a member that responded when it was probed.
func (m *Member) Responds() bool { return m.response() != diagnosis.NoResponse }

// state returns the state of a member in the member list. Where no list could be read, it
// is the list of the last status.
func (o *Observed) state(m *Member) diagnosis.MemberState {
	pod := o.pod(m.Name)
	signs := diagnosis.Signs{Vote: diagnosis.Votes, Response: m.response(), Evidence: pod.evidence(), HasPVC: o.pvc(m.Name) != nil}
	if m.Learner {
		signs.Vote = diagnosis.DoesNotVote
	}
	if pod != nil {
		signs.Running, signs.Ready = pod.Running, pod.Ready
	}
	return diagnosis.StateOf(signs)
}

// quorumLoss diagnoses a quorum that could not be read.
func (o *Observed) quorumLoss() diagnosis.Loss { return o.facts().QuorumLoss() }

// facts returns what package diagnosis needs to know of a cluster whose member list could
// not be read.
func (o *Observed) facts() *diagnosis.Cluster {
	c := &diagnosis.Cluster{
		HasLearners: o.knowsLearners(), UnreadFor: o.unreadFor(), ReadError: o.Etcd.Err, Denied: o.Etcd.Denied,
		Options: diagnosis.Options{Cluster: o.Cluster.Name, Automatic: o.recoversByItself(), Grace: recovery.Grace},
	}
	if b := o.Cluster.Status.LastBackup; resources.Restorable(b) == nil {
		c.Options.LastBackup = b.Name
	}
	if r := o.recovery(); r.InProgress() {
		c.RecoveryMember = r.RecoveryMember
	}
	for i := range o.Etcd.Members {
		c.Members = append(c.Members, o.memberFacts(&o.Etcd.Members[i]))
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned {
			c.Pods = append(c.Pods, diagnosis.Pod{
				Name: p.Name, Node: p.Node, Evidence: p.evidence(), Running: p.Running, Ready: p.Ready,
				LabelledVoter: p.Role == PodVoter || p.Role == PodDraining, Waiting: p.Waiting,
			})
		}
	}
	for i := range o.PVCs {
		if pvc := &o.PVCs[i]; pvc.Owned {
			c.PVCs = append(c.PVCs, diagnosis.PVC{Name: pvc.Name, Terminating: pvc.Terminating})
		}
	}
	return c
}

// unreadFor is how long the member list could not be read, by the last status.
func (o *Observed) unreadFor() time.Duration {
	switch before := o.condition(v1beta2.ClusterConditionQuorumLost); before.Status {
	case corev1.ConditionTrue:
		// Voters that come back after a proven loss elect a leader, too. The loss ends when they
		// have one.
		return max(diagnosis.ElectionGrace, o.since(before))
	case corev1.ConditionUnknown:
		return o.since(before)
	default:
		return 0
	}
}

func (o *Observed) memberFacts(m *Member) diagnosis.Member {
	facts := diagnosis.Member{
		Name: m.Name, Started: m.Started, Learner: m.Learner, Response: m.response(),
		RaftIndex: signed(m.RaftIndex), DBSize: m.DBSize, Limitation: resources.RevisionGoesBack(o.recoveryVersion(m)),
	}
	if m.View != nil {
		facts.View = &diagnosis.View{Learner: m.View.Learner}
		for i := range m.View.Members {
			listed := &m.View.Members[i]
			facts.View.Members = append(facts.View.Members, diagnosis.ListedMember{Name: listed.Name, Learner: listed.Learner, Unmanaged: listed.Unmanaged})
		}
	}
	return facts
}

// recoveryVersion returns the version of etcd with which a recovery from a member starts.
func (o *Observed) recoveryVersion(source *Member) string {
	if v := o.runs(source); v != nil {
		return v.String()
	}
	return o.Cluster.Spec.Version
}

// signed is an index as the API holds it.
func signed(index uint64) int64 { return int64(min(index, math.MaxInt64)) }
