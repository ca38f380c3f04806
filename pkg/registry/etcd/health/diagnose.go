// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Diagnose returns the verdict on a probe, and what to do next.
func Diagnose(p *Probe) *v1beta2.EtcdClusterHealth {
	h := &v1beta2.EtcdClusterHealth{
		ObjectMeta:              p.metadata(),
		DesiredSize:             ptr.Deref(p.Cluster.Spec.Replicas, 0),
		QuorumResponded:         p.Confirmed != nil,
		ClientCertificateExpiry: expiry(p.ClientCertificateExpiry),
		Problems:                slices.Clone(p.Problems),
		ProbedAt:                metav1.NewMicroTime(p.ProbedAt),
		Took:                    metav1.Duration{Duration: p.Took},
	}
	if p.ConfirmErr != nil && len(p.responded()) > 0 {
		h.Problems = append(h.Problems, "no quorum confirmed the member list: "+p.ConfirmErr.Error())
	}
	f := p.findings(h)
	h.Verdict, h.Message = f.judge()
	h.Tolerance = f.tolerance(h.Verdict)
	h.NextSteps = f.steps(h)
	return h
}

// findings are what a verdict is made from.
type findings struct {
	*Probe
	members []*v1beta2.MemberHealth
	// voters of the effective member list, and those of them that serve.
	voters, serving []*v1beta2.MemberHealth
	// clusters and leaders group the members by the cluster to which they belong, and by the
	// leader that they follow.
	clusters, leaders map[string][]string
	// lists groups the members by the member list that they have.
	lists map[string][]string
}

func (p *Probe) findings(h *v1beta2.EtcdClusterHealth) *findings {
	f := &findings{Probe: p, clusters: map[string][]string{}, leaders: map[string][]string{}, lists: map[string][]string{}}
	var ahead uint64
	for _, a := range p.responded() {
		ahead = max(ahead, a.Health.RaftIndex)
	}
	all := p.entries()
	h.Members = make([]v1beta2.MemberHealth, len(all))
	for i := range all {
		m := &h.Members[i]
		p.fill(m, &all[i], ahead)
		f.members = append(f.members, m)
		if all[i].listed && !all[i].Learner {
			f.voters = append(f.voters, m)
			if p.stateOf(m).IsServing() {
				f.serving = append(f.serving, m)
			}
		}
		if m.Responded {
			f.clusters[m.ClusterID] = append(f.clusters[m.ClusterID], m.Name)
		}
		if m.Responded && m.Leader != "" && !p.onlyResponds(m.Name) { // such a member may not know of a new leader
			f.leaders[m.Leader] = append(f.leaders[m.Leader], m.Name)
		}
	}
	for _, a := range p.responded() {
		if a.ViewErr == nil && a.Health.Leader != 0 {
			key := strings.Join(p.describeView(a), ", ")
			f.lists[key] = append(f.lists[key], a.Name)
		}
	}
	h.Voters, h.Serving = int32(len(f.voters)), int32(len(f.serving))
	if len(f.clusters) == 1 {
		h.ClusterID = slices.Collect(maps.Keys(f.clusters))[0]
	}
	if len(f.leaders) == 1 {
		h.Leader = slices.Collect(maps.Keys(f.leaders))[0]
	}
	return f
}

// fill writes what one member says.
func (p *Probe) fill(h *v1beta2.MemberHealth, m *entry, ahead uint64) {
	h.Name, h.ID = m.Name, hex(m.ID)
	h.Pod, h.Claim = podOf(p.pod(m.Name)), pvcOf(p.pvc(m.Name))
	h.Role = p.role(m)
	a := p.responseOf(m)
	if a == nil {
		h.Error = cmp.Or(p.toldByController(m), "it has no pod that could be probed")
		if h.Pod != nil {
			h.Error = "its pod has no address"
		}
		return
	}
	h.Took = metav1.Duration{Duration: a.Took.Round(time.Microsecond)}
	if a.Err != nil {
		h.Error = a.Err.Error()
		return
	}
	s := &a.Health
	h.Responded = true
	h.Leader, h.ClusterID = p.nameForID(s.Leader), hex(s.ClusterID)
	h.Term, h.RaftIndex, h.RaftApplied = int64(s.RaftTerm), int64(s.RaftIndex), int64(s.RaftApplied)
	h.RaftLag = int64(ahead - s.RaftIndex)
	h.DBSize, h.DBSizeInUse, h.Quota = s.DBSize, s.DBSizeInUse, p.quota(m.Name, s.Quota)
	for _, alarm := range s.Alarms {
		h.Alarms = append(h.Alarms, fmt.Sprintf("%s raised by %s", alarm.Type, p.nameForID(alarm.MemberID)))
	}
	h.Errors = slices.Clone(s.Errors)
	h.Version = s.Version
	h.CertificateExpiry = expiry(s.CertificateExpiry)
}

// toldByController is what the status says of a member that another program runs; empty for every other
// member.
func (p *Probe) toldByController(m *entry) string {
	switch s := p.unmanaged(hex(m.ID)); {
	case s == nil:
		return ""
	case s.Healthy == corev1.ConditionTrue:
		return "another program runs it; the controller reports that it is healthy"
	default:
		return "another program runs it; the controller reports: " + s.Message
	}
}

// quota returns the quota that a member reports, or the one that its pod was made with; 0 if neither is
// known.
func (p *Probe) quota(member string, said int64) int64 {
	pod := p.pod(member)
	if said > 0 || pod == nil {
		return said
	}
	return resources.QuotaOf(pod).Bytes
}

func expiry(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return ptr.To(metav1.NewTime(at))
}

func (f *findings) judge() (v1beta2.ClusterVerdict, string) {
	responded := len(f.responded())
	switch {
	case f.Cluster.Spec.Replicas != nil && *f.Cluster.Spec.Replicas == 0 && responded == 0:
		return v1beta2.VerdictHibernated, "spec.size is 0: the cluster has no pods, and its PVCs are kept"
	case !f.hasServed() && responded == 0:
		return v1beta2.VerdictCreating, "the cluster has not served yet" + f.waiting()
	case responded == 0:
		return f.judgeUnresponsive()
	case len(f.clusters) > 1:
		return v1beta2.VerdictSplitBrain, "members of different etcd clusters respond: " + groups(f.clusters, "cluster ")
	case len(f.leaders) > 1:
		return v1beta2.VerdictDisagreement, "the members do not follow the same leader: " + groups(f.leaders, "")
	case len(f.lists) > 1:
		return v1beta2.VerdictDisagreement, "the members have different member lists: " + groups(f.lists, "")
	case f.Confirmed == nil:
		return v1beta2.VerdictQuorumLost, f.describeLoss()
	}
	if faults := f.faults(); len(faults) > 0 {
		return v1beta2.VerdictDegraded, strings.Join(faults, "; ")
	}
	return v1beta2.VerdictHealthy, f.describeHealthy()
}

// hasServed is true if the cluster has served before.
func (f *findings) hasServed() bool {
	phase := f.Cluster.Status.Phase
	return phase != v1beta2.ClusterPhaseNone && phase != v1beta2.ClusterPhaseCreating
}

func (f *findings) waiting() string {
	if b := f.Cluster.Status.BlockedBy; b != nil {
		return ": " + b.Message
	}
	return ""
}

// judgeUnresponsive judges a cluster without a member that responded. Where Kubernetes says that
// the pods run, only the API server may be cut off from them.
func (f *findings) judgeUnresponsive() (v1beta2.ClusterVerdict, string) {
	running := 0
	for i := range f.Pods {
		if isRunning(&f.Pods[i]) && f.Pods[i].DeletionTimestamp == nil {
			running++
		}
	}
	switch {
	case !f.PodsKnown || running >= diagnosis.Quorum(max(len(f.voters), 1)):
		return v1beta2.VerdictUnreachable, fmt.Sprintf("none of %s responds to this API server; they may still serve other clients", diagnosis.Count(len(f.Responses), "member"))
	case running > 0:
		return v1beta2.VerdictQuorumLost, fmt.Sprintf("no member responds, and the pods of %d of %s run; a quorum needs %d",
			running, diagnosis.Count(len(f.voters), "voter"), diagnosis.Quorum(len(f.voters)))
	default:
		return v1beta2.VerdictQuorumLost, "no pod of a member runs"
	}
}

func (f *findings) describeLoss() string {
	need := diagnosis.Quorum(len(f.voters))
	if len(f.serving) >= need {
		return fmt.Sprintf("%d of %s follow a leader, and no read went through a quorum in time; an election takes about a second",
			len(f.serving), diagnosis.Count(len(f.voters), "voter"))
	}
	return fmt.Sprintf("%d of %s serve, and a quorum needs %d: %s", len(f.serving), diagnosis.Count(len(f.voters), "voter"), need, strings.Join(f.unhealthyVoters(), "; "))
}

// unhealthyVoters says which voters do not serve, and why.
func (f *findings) unhealthyVoters() []string {
	var list []string
	for _, m := range f.voters {
		switch {
		case f.unmanaged(m.ID) != nil:
			if !f.stateOf(m).IsServing() {
				list = append(list, "member "+m.Name+" is not healthy: "+m.Error)
			}
		case !m.Responded && m.Pod == nil && m.Claim == nil:
			list = append(list, "member "+m.Name+" has neither pod nor PVC")
		case !m.Responded && m.Pod == nil:
			list = append(list, "member "+m.Name+" has no pod")
		case !m.Responded:
			list = append(list, "member "+m.Name+" does not respond")
		case m.Leader == "":
			list = append(list, "member "+m.Name+" knows no leader")
		case f.onlyResponds(m.Name):
			list = append(list, "member "+m.Name+" responds and does not complete a linearizable read")
		case f.stateOf(m) == diagnosis.Stopped && f.Confirmed == nil:
			list = append(list, "pod "+m.Name+" is being deleted")
		}
	}
	return list
}

// faults says what is wrong with a cluster whose quorum responds.
func (f *findings) faults() []string {
	list := f.unhealthyVoters()
	if desired, own := int(ptr.Deref(f.Cluster.Spec.Replicas, 0)), f.countOwn(); own != desired {
		list = append(list, fmt.Sprintf("it has %s, and the desired size is %d", diagnosis.Count(own, "voter"), desired))
	}
	if alarms := f.alarms(); len(alarms) > 0 {
		list = append(list, "etcd rejects writes: "+strings.Join(alarms, ", "))
	}
	for _, m := range f.members {
		if m.RaftLag >= diagnosis.NoticeableLag && m.Role != v1beta2.MemberRoleLearner {
			list = append(list, fmt.Sprintf("member %s is %d entries behind", m.Name, m.RaftLag))
		}
		if m.Pod != nil && m.Pod.Terminating && m.Responded {
			list = append(list, "pod "+m.Pod.Name+" is being deleted")
		}
	}
	return list
}

// alarms returns every alarm once.
func (f *findings) alarms() []string {
	var list []string
	for _, m := range f.members {
		for _, alarm := range m.Alarms {
			if text := "alarm " + alarm; !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}

func (f *findings) describeHealthy() string {
	text := fmt.Sprintf("all %d voters serve", len(f.voters))
	if len(f.voters) == 1 {
		text = "the only voter serves"
	}
	if others := len(f.voters) - f.countOwn(); others > 0 {
		text += fmt.Sprintf("; another program runs %d of them", others)
	}
	for _, m := range f.members {
		if m.Role == v1beta2.MemberRoleLearner || m.Role == v1beta2.MemberRolePending {
			text += "; member " + m.Name + " is joining"
		}
	}
	return text
}

// countOwn counts the voters of the cluster, without those that another program runs.
func (f *findings) countOwn() int {
	own := 0
	for _, m := range f.voters {
		if f.unmanaged(m.ID) == nil {
			own++
		}
	}
	return own
}

// tolerance returns the fault tolerance; nil if it is not known.
func (f *findings) tolerance(verdict v1beta2.ClusterVerdict) *int32 {
	if len(f.voters) == 0 || verdict == v1beta2.VerdictUnreachable || verdict == v1beta2.VerdictSplitBrain {
		return nil
	}
	return ptr.To(diagnosis.FaultTolerance(len(f.voters), len(f.serving), f.Confirmed != nil))
}

// groups lists the members by what they say.
func groups(said map[string][]string, prefix string) string {
	var list []string
	for _, what := range slices.SortedFunc(maps.Keys(said), cmp.Compare[string]) {
		members := slices.Sorted(slices.Values(said[what]))
		list = append(list, strings.Join(members, " and ")+": "+prefix+what)
	}
	return strings.Join(list, "; ")
}
