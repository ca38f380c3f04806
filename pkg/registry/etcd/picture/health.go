// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// noticeableLag is how many raft entries a member may be behind before it counts;
// less is the ordinary life of a follower.
const noticeableLag = 1000

// Health says what a picture comes to.
func Health(p *Picture) *v1beta2.EtcdClusterHealth {
	h := &v1beta2.EtcdClusterHealth{
		ObjectMeta:              p.metadata(),
		Declared:                ptr.Deref(p.Cluster.Spec.Replicas, 0),
		QuorumAnswered:          p.Confirmed != nil,
		ClientCertificateExpiry: expiry(p.ClientCertificateExpiry),
		Problems:                slices.Clone(p.Problems),
		AskedAt:                 metav1.NewMicroTime(p.AskedAt),
		Took:                    metav1.Duration{Duration: p.Took},
	}
	if p.ConfirmErr != nil && len(p.answered()) > 0 {
		h.Problems = append(h.Problems, "no quorum confirmed the member list: "+p.ConfirmErr.Error())
	}
	f := p.facts(h)
	h.Verdict, h.Message = f.judge()
	h.Tolerance = f.tolerance(h.Verdict)
	h.NextSteps = f.steps(h)
	return h
}

// facts is what a verdict is made from.
type facts struct {
	*Picture
	members []*v1beta2.MemberHealth
	// voters in the list that counts, and those of them that answered and follow a
	// leader.
	voters, serving []*v1beta2.MemberHealth
	// clusters and leaders tell who belongs to which cluster and follows whom.
	clusters, leaders map[string][]string
	// lists tells who has which members in mind.
	lists map[string][]string
}

func (p *Picture) facts(h *v1beta2.EtcdClusterHealth) *facts {
	f := &facts{Picture: p, clusters: map[string][]string{}, leaders: map[string][]string{}, lists: map[string][]string{}}
	var ahead uint64
	for _, a := range p.answered() {
		ahead = max(ahead, a.Health.RaftIndex)
	}
	all := p.members()
	h.Members = make([]v1beta2.MemberHealth, len(all))
	for i := range all {
		m := &h.Members[i]
		p.fill(m, &all[i], ahead)
		f.members = append(f.members, m)
		if all[i].listed && !all[i].Learner {
			f.voters = append(f.voters, m)
			if m.Answered && m.Leader != "" {
				f.serving = append(f.serving, m)
			}
		}
		if m.Answered {
			f.clusters[m.ClusterID] = append(f.clusters[m.ClusterID], m.Name)
		}
		if m.Answered && m.Leader != "" {
			f.leaders[m.Leader] = append(f.leaders[m.Leader], m.Name)
		}
	}
	for _, a := range p.answered() {
		if a.ViewErr == nil && a.Health.Leader != 0 {
			key := strings.Join(p.described(a), ", ")
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

// fill says what one member says.
func (p *Picture) fill(h *v1beta2.MemberHealth, m *known, ahead uint64) {
	h.Name, h.ID = m.Name, hex(m.ID)
	h.Pod, h.Claim = podOf(p.pod(m.Name)), claimOf(p.claim(m.Name))
	h.Role = p.role(m)
	a := p.answer(m)
	if a == nil {
		h.Error = "it has no pod that could be asked"
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
	h.Answered = true
	h.Leader, h.ClusterID = p.nameFor(s.Leader), hex(s.ClusterID)
	h.Term, h.RaftIndex, h.RaftApplied = int64(s.RaftTerm), int64(s.RaftIndex), int64(s.RaftApplied)
	h.RaftLag = int64(ahead - s.RaftIndex)
	h.DBSize, h.DBSizeInUse, h.Quota = s.DBSize, s.DBSizeInUse, p.quota(s.Quota)
	for _, alarm := range s.Alarms {
		h.Alarms = append(h.Alarms, fmt.Sprintf("%s raised by %s", alarm.Type, p.nameFor(alarm.MemberID)))
	}
	h.Errors = slices.Clone(s.Errors)
	h.Version = s.Version
	h.CertificateExpiry = expiry(s.CertificateExpiry)
}

// quota returns what a member says, or, before it says so itself, what it was
// started with.
func (p *Picture) quota(said int64) int64 {
	if said > 0 {
		return said
	}
	return resources.QuotaBackendBytes(p.Cluster)
}

func expiry(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return ptr.To(metav1.NewTime(at))
}

// quorum is how many of n voters must agree.
func quorum(n int) int { return n/2 + 1 }

func (f *facts) judge() (v1beta2.ClusterVerdict, string) {
	answered := len(f.answered())
	switch {
	case f.Cluster.Spec.Replicas != nil && *f.Cluster.Spec.Replicas == 0 && answered == 0:
		return v1beta2.VerdictHibernated, "the cluster is declared to have no members; its volumes are kept"
	case !f.served() && answered == 0:
		return v1beta2.VerdictCreating, "the cluster has not served yet" + f.waiting()
	case answered == 0:
		return f.judgeSilence()
	case len(f.clusters) > 1:
		return v1beta2.VerdictSplitBrain, "members of different etcd clusters answer: " + groups(f.clusters, "cluster ")
	case len(f.leaders) > 1:
		return v1beta2.VerdictDisagreement, "the members do not follow the same leader: " + groups(f.leaders, "")
	case len(f.lists) > 1:
		return v1beta2.VerdictDisagreement, "the members do not have the same members in mind: " + groups(f.lists, "")
	case f.Confirmed == nil:
		return v1beta2.VerdictQuorumLost, f.lost()
	}
	if wrong := f.wrong(); len(wrong) > 0 {
		return v1beta2.VerdictDegraded, strings.Join(wrong, "; ")
	}
	return v1beta2.VerdictHealthy, f.fine()
}

// served is true if the cluster has served before.
func (f *facts) served() bool {
	phase := f.Cluster.Status.Phase
	return phase != v1beta2.ClusterPhaseNone && phase != v1beta2.ClusterPhaseCreating
}

func (f *facts) waiting() string {
	if b := f.Cluster.Status.BlockedBy; b != nil {
		return ": " + b.Message
	}
	return ""
}

// judgeSilence judges a cluster of which no member answered. Pods that Kubernetes
// says run may be cut off from the API server only.
func (f *facts) judgeSilence() (v1beta2.ClusterVerdict, string) {
	running := 0
	for i := range f.Pods {
		if runs(&f.Pods[i]) && f.Pods[i].DeletionTimestamp == nil {
			running++
		}
	}
	switch {
	case !f.PodsKnown || running >= quorum(max(len(f.voters), 1)):
		return v1beta2.VerdictUnreachable, fmt.Sprintf("none of %s answers this server; whether they serve others is not known", count(len(f.Answers), "member"))
	case running > 0:
		return v1beta2.VerdictQuorumLost, fmt.Sprintf("no member answers, and the pods of %d of %s run: %d are needed",
			running, count(len(f.voters), "voter"), quorum(len(f.voters)))
	default:
		return v1beta2.VerdictQuorumLost, "no pod of a member runs"
	}
}

func (f *facts) lost() string {
	need := quorum(len(f.voters))
	if len(f.serving) >= need {
		return fmt.Sprintf("%d of %s follow a leader, and no read went through a quorum in time; if this is an election, it is over in a second",
			len(f.serving), count(len(f.voters), "voter"))
	}
	return fmt.Sprintf("%d of %s serve and %d are needed: %s", len(f.serving), count(len(f.voters), "voter"), need, strings.Join(f.sick(), "; "))
}

// sick says which voters do not serve.
func (f *facts) sick() []string {
	var list []string
	for _, m := range f.voters {
		switch {
		case !m.Answered && m.Pod == nil && m.Claim == nil:
			list = append(list, "member "+m.Name+" has neither pod nor volume")
		case !m.Answered && m.Pod == nil:
			list = append(list, "member "+m.Name+" has no pod")
		case !m.Answered:
			list = append(list, "member "+m.Name+" does not answer")
		case m.Leader == "":
			list = append(list, "member "+m.Name+" knows no leader")
		}
	}
	return list
}

// wrong says what is not as it should be in a cluster whose quorum answers.
func (f *facts) wrong() []string {
	list := f.sick()
	if declared := int(ptr.Deref(f.Cluster.Spec.Replicas, 0)); len(f.voters) != declared {
		list = append(list, fmt.Sprintf("it has %s and %d are declared", count(len(f.voters), "voter"), declared))
	}
	list = append(list, f.alarms()...)
	for _, m := range f.members {
		if m.RaftLag >= noticeableLag && m.Role != v1beta2.MemberRoleLearner {
			list = append(list, fmt.Sprintf("member %s is %d entries behind", m.Name, m.RaftLag))
		}
		if m.Pod != nil && m.Pod.Terminating && m.Answered {
			list = append(list, "pod "+m.Pod.Name+" is going away")
		}
	}
	return list
}

// alarms returns every alarm once.
func (f *facts) alarms() []string {
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

func (f *facts) fine() string {
	text := fmt.Sprintf("all %s serve", count(len(f.voters), "voter"))
	for _, m := range f.members {
		if m.Role == v1beta2.MemberRoleLearner || m.Role == v1beta2.MemberRolePending {
			text += "; member " + m.Name + " is joining"
		}
	}
	return text
}

// tolerance is how many more voters may fail; nil if that is not known.
func (f *facts) tolerance(verdict v1beta2.ClusterVerdict) *int32 {
	if len(f.voters) == 0 || verdict == v1beta2.VerdictUnreachable || verdict == v1beta2.VerdictSplitBrain {
		return nil
	}
	t := int32(len(f.serving) - quorum(len(f.voters)))
	if f.Confirmed == nil {
		// A quorum that does not answer is lost, however many of its members still do.
		t = min(t, -1)
	}
	return &t
}

// groups shows who says what.
func groups(said map[string][]string, prefix string) string {
	var list []string
	for _, what := range slices.SortedFunc(maps.Keys(said), cmp.Compare[string]) {
		who := slices.Sorted(slices.Values(said[what]))
		list = append(list, strings.Join(who, " and ")+": "+prefix+what)
	}
	return strings.Join(list, "; ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
