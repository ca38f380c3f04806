// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// facts converts the probe of a cluster whose member list no quorum confirmed into the
// input of package diagnosis. The members are those of the last status, and others that
// responded: the controller counts the same ones.
func (p *Probe) facts() *diagnosis.Cluster {
	c := diagnosis.FromStatus(p.Cluster, resources.RevisionGoesBack)
	c.Pods, c.PVCs, c.PodsUnknown, c.PermanentByStatus = nil, nil, !p.PodsKnown, nil
	c.HasLearners = p.hasLearners()
	c.Options = diagnosis.Options{Cluster: p.Cluster.Name}
	if r := p.Cluster.Status.Recovery; r.IsInProgress() {
		c.RecoveryMember, c.Cutover = r.RecoveryMember, r.IsPlannedCutover()
		if r.Source.PVC != "" && r.RecoveryMember != "" {
			c.StoppedSource = r.Source.Member
		}
	}
	for i := range c.Members {
		c.Members[i].RaftIndex = 0 // the probe is newer than the status
	}
	for _, r := range p.responded() {
		p.addResponse(c, r)
	}
	for i := range p.Pods {
		c.Pods = append(c.Pods, podFacts(&p.Pods[i]))
	}
	for i := range p.PVCs {
		c.PVCs = append(c.PVCs, diagnosis.PVC{Name: p.PVCs[i].Name, Terminating: p.PVCs[i].DeletionTimestamp != nil})
	}
	return c
}

// addResponse adds what a member said.
func (p *Probe) addResponse(c *diagnosis.Cluster, r *Response) {
	i := slices.IndexFunc(c.Members, func(m diagnosis.Member) bool { return m.Name == r.Name })
	if i < 0 {
		i = len(c.Members)
		c.Members = append(c.Members, diagnosis.Member{Name: r.Name, Started: true, Learner: r.Health.Learner})
	}
	m := &c.Members[i]
	m.Response, m.RaftIndex, m.DBSize = diagnosis.NoLeader, int64(r.Health.RaftIndex), r.Health.DBSize
	if r.Health.Leader != 0 {
		m.Response = diagnosis.FollowsLeader
	}
	m.View = &diagnosis.View{Learner: r.Health.Learner}
	for _, listed := range r.View.Members {
		m.View.Members = append(m.View.Members, diagnosis.ListedMember{Name: nameOf(listed), Learner: listed.Learner, Unmanaged: !p.isManaged(listed)})
	}
}

// unmanaged returns what the status says of a member that another program runs; nil for every other
// member.
func (p *Probe) unmanaged(id string) *v1beta2.MemberStatus {
	for i := range p.Cluster.Status.MemberStatuses {
		if s := &p.Cluster.Status.MemberStatuses[i]; s.Unmanaged && s.ID == id && id != "" {
			return s
		}
	}
	return nil
}

// listsUnmanaged is true if the status lists a member that another program runs.
func (p *Probe) listsUnmanaged() bool {
	return slices.ContainsFunc(p.Cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Unmanaged })
}

// isManaged is true for a member whose peer URL is one that the operator gives.
func (p *Probe) isManaged(m etcd.Member) bool {
	return slices.ContainsFunc(m.PeerURLs, func(url string) bool {
		name, err := resources.MemberFromPeerURL(url)
		return err == nil && resources.PeerURL(p.Cluster, name) == url
	})
}

// hasLearners is true if every version that the cluster runs or is to run has learners.
func (p *Probe) hasLearners() bool {
	versions := []string{p.Cluster.Spec.Version}
	for i := range p.Cluster.Status.MemberStatuses {
		versions = append(versions, p.Cluster.Status.MemberStatuses[i].Version)
	}
	return !slices.ContainsFunc(versions, func(v string) bool { return v != "" && !resources.HasLearners(v) })
}

func podFacts(p *corev1.Pod) diagnosis.Pod {
	role := p.Labels[resources.LabelRole]
	return diagnosis.Pod{
		Name: p.Name, Node: p.Spec.NodeName, Evidence: diagnosis.EvidenceOf(p),
		Running: isRunning(p), Ready: podOf(p).Ready,
		LabelledVoter: role == resources.RoleVoter || role == resources.RoleDraining,
	}
}

// stateOf returns the state of a member from the probe of it.
func (p *Probe) stateOf(m *v1beta2.MemberHealth) diagnosis.MemberState {
	signs := diagnosis.Signs{Vote: diagnosis.Votes, Evidence: diagnosis.PodUnknown, Lag: m.RaftLag}
	if m.Role == v1beta2.MemberRoleLearner || m.Role == v1beta2.MemberRolePending {
		signs.Vote = diagnosis.DoesNotVote
	}
	switch {
	case m.Responded && p.onlyResponds(m.Name):
		signs.Response = diagnosis.NoRead
	case m.Responded && m.Leader != "":
		signs.Response = diagnosis.FollowsLeader
	case m.Responded:
		signs.Response = diagnosis.NoLeader
	}
	if pod := p.pod(m.Name); pod != nil || p.PodsKnown {
		signs.Evidence = diagnosis.EvidenceOf(pod)
		signs.Running, signs.Ready = isRunning(pod), m.Pod != nil && m.Pod.Ready
	}
	if s := p.unmanaged(m.ID); s != nil {
		signs.Evidence = diagnosis.PodUnknown // no pod of the cluster tells about it
		if s.Healthy == corev1.ConditionTrue {
			signs.Response = diagnosis.FollowsLeader // only the controller sends requests to it
		}
	}
	signs.HasPVC = m.Claim != nil && !m.Claim.Terminating
	return diagnosis.StateOf(signs)
}
