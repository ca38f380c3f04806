// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"
	"time"
)

// Cluster holds the facts about one cluster whose member list could not be read through
// a quorum.
type Cluster struct {
	// Members are those of the last status, and others that responded.
	Members []Member
	// Pods and PVCs of exactly this cluster, without those that no member has used yet.
	// PodsUnknown is true if Kubernetes could not be read.
	Pods        []Pod
	PVCs        []PVC
	PodsUnknown bool
	// HasLearners is false for a cluster whose etcd adds members as voters.
	HasLearners bool
	// PermanentByStatus, if not nil, says whether the loss was proven to be permanent by the last
	// status, from which these facts come.
	PermanentByStatus *bool
	// TakenBack is true for members whose PVCs were taken back from an earlier cluster, while no quorum has
	// confirmed them: more members may have voted, and nothing of those came back.
	TakenBack bool
	// MayHaveUnmanaged is true while etcd may have members that another program runs, although
	// none is known.
	MayHaveUnmanaged bool
	// DataDiffers is true if a member that responded says that the data of the members differs.
	DataDiffers bool
	// RecoveryMember is the name of the recovery member that is being filled; empty if there
	// is none.
	RecoveryMember string
	// Cutover is true while a restore replaces the members, and the pod of the recovery member exists.
	Cutover bool
	// StoppedSource is the name of the member that a recovery has stopped, or is about to stop, to
	// read its PVC; empty if there is none.
	StoppedSource string
	// UnreadFor is how long the member list could not be read, by the last status; 0 if that
	// status still had one.
	UnreadFor time.Duration
	// ReadError says why the member list could not be read. Denied is true if etcd's own
	// authorization rejected the request, ListTooLarge if a member responded with a list that is not used.
	ReadError            string
	Denied, ListTooLarge bool
	Options              Options
}

// Member is one member of etcd.
type Member struct {
	Name string
	// Unmanaged is true for a member that the operator has not added. Nothing proves that it
	// has ended.
	Unmanaged bool
	// Started is false until the member has published its name.
	Started, Learner bool
	Response         Response
	// RaftIndex up to which it has committed; 0 if it did not respond.
	RaftIndex int64
	DBSize    int64
	// View is its own view of the membership; nil if it did not respond.
	View *View
	// Limitation says what a recovery with the member's version of etcd cannot keep; empty if
	// there is nothing.
	Limitation string
}

// View is how one member sees the membership, while no member list can be read through a
// quorum.
type View struct {
	// Learner is true if the member has not heard that it votes.
	Learner bool
	// Members is the member list as far as the member has applied the log; nil if it could
	// not be read. Learners do not serve it.
	Members []ListedMember
}

// ListedMember is one entry of the member list that a member holds.
type ListedMember struct {
	Name    string
	Learner bool
	// Unmanaged is true for a member that the operator has not added. Nothing proves that it
	// has ended.
	Unmanaged bool
}

// Pod is a pod of the cluster.
type Pod struct {
	Name, Node     string
	Evidence       Evidence
	Running, Ready bool
	// RunningFor is for how long the container runs, and Age for how long the pod exists.
	RunningFor, Age time.Duration
	// NodeReadyFor is for how long its node has been ready; 0 if that is not known.
	NodeReadyFor time.Duration
	// Failures is how often a container of the pod has ended.
	Failures int
	// Overdue is true if the pod should have ended by now, after its deletion was requested.
	Overdue bool
	// NodeNotReady is true if nothing shows that the node of the pod reports, so that what
	// Kubernetes says of the pod may be old.
	NodeNotReady bool
	// NodeUnread is why the node could not be read, if NodeNotReady is true because of that.
	NodeUnread string
	// LabelledVoter is true if the label of the pod says that its member votes.
	LabelledVoter bool
	// Waiting says why the pod does not run, in the words of Kubernetes.
	Waiting string
}

// PVC is the PersistentVolumeClaim with the data of one member.
type PVC struct {
	Name string
	// Terminating PVCs are being deleted: nothing may rely on their data.
	Terminating bool
}

// StateOf returns the state of a member.
func (c *Cluster) StateOf(m *Member) MemberState { return c.stateWith(m, c.VoteOf(m)) }

// stateWith returns the state of a member whose vote is given.
func (c *Cluster) stateWith(m *Member, vote Vote) MemberState {
	signs := Signs{Vote: vote, Response: m.Response, Evidence: c.Evidence(m.Name), HasPVC: c.HasPVC(m.Name)}
	if p := c.pod(m.Name); p != nil {
		signs.Running, signs.Ready = p.Running, p.Ready
	}
	return StateOf(signs)
}

// Evidence returns the evidence of the end of a pod.
func (c *Cluster) Evidence(name string) Evidence {
	m := c.member(name)
	switch p := c.pod(name); {
	case m != nil && m.Unmanaged:
		return PodUnknown
	case p != nil:
		return p.Evidence
	case c.PodsUnknown:
		return PodUnknown
	default:
		return PodAbsent
	}
}

// MayComeBack is true unless a member has ended and its data no longer exists.
func (c *Cluster) MayComeBack(name string) bool {
	return !c.Evidence(name).HasEnded() || c.HasPVC(name)
}

// Remains returns the names of the pods and PVCs that exist, also of those that are about
// to be deleted.
func (c *Cluster) Remains() []string {
	var names []string
	for i := range c.Pods {
		names = append(names, c.Pods[i].Name)
	}
	for i := range c.PVCs {
		names = append(names, c.PVCs[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *Cluster) pod(name string) *Pod {
	i := slices.IndexFunc(c.Pods, func(p Pod) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Pods[i]
}

func (c *Cluster) member(name string) *Member {
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Members[i]
}

// HasPVC is true if the PVC of a member exists and is not being deleted.
func (c *Cluster) HasPVC(name string) bool {
	return slices.ContainsFunc(c.PVCs, func(p PVC) bool { return p.Name == name && !p.Terminating })
}
