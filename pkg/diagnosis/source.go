// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

var (
	// ErrNoSource means that no member responds from which a recovery could continue.
	ErrNoSource = errors.New("no member responds from which the cluster could recover")
	// ErrNotASource means that the member that was requested does not respond, or is about to
	// end.
	ErrNotASource = errors.New("the member does not respond, or its pod is being deleted")
	// ErrDataDiffers means that etcd has found that the data of the members differs.
	ErrDataDiffers = errors.New("the data of the members differs (alarm CORRUPT), and nothing tells which of them is right: save and compare the data of each")
	// ErrNoVolume means that no member responds, and that the member that was requested has no PVC
	// whose data a recovery could read.
	ErrNoVolume = errors.New("no member responds, and this member is no voter with a PVC whose data could be read")
	// ErrSeveralVolumes means that no member responds, and that several have a PVC.
	ErrSeveralVolumes = errors.New("no member responds, and several have a PVC: nothing tells which of them has lost the least")
)

// RecoveryPlan says from which member a recovery continues, and what that loses.
type RecoveryPlan struct {
	Source *Member
	// PVC is what is read if no member responds; empty if the source responds. The pod of the
	// source is stopped for that.
	PVC string
	// Survivors are all members that could be the source, the best first.
	Survivors []*Member
	// EstimatedDataLoss says which data the recovered cluster will not have.
	EstimatedDataLoss string
}

// PlanRecovery plans a recovery from the requested member, or from the best source if none
// is requested. Where data differs and several members are left, only a person chooses.
func (c *Cluster) PlanRecovery(requested string) (*RecoveryPlan, error) {
	sources := c.RankSources()
	if len(sources) == 0 {
		return c.planFromVolume(requested)
	}
	if c.DataDiffers && requested == "" && (len(sources) > 1 || len(c.unavailable(sources[0])) > 0) {
		return nil, ErrDataDiffers
	}
	source := sources[0]
	if requested != "" {
		i := slices.IndexFunc(sources, func(m *Member) bool { return m.Name == requested })
		if i < 0 {
			return nil, ErrNotASource
		}
		source = sources[i]
	}
	return &RecoveryPlan{Source: source, Survivors: sources, EstimatedDataLoss: c.estimateDataLoss(source, sources[0])}, nil
}

// RankSources returns the members from which a recovery could continue, the best first. The
// highest raft index wins, because it stands for the most committed writes. Of members with
// an equal raft index a voter comes before a learner, then the name decides.
func (c *Cluster) RankSources() []*Member {
	var list []*Member
	for i := range c.Members {
		if m := &c.Members[i]; c.isSource(m) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b *Member) int {
		return cmp.Or(
			cmp.Compare(b.RaftIndex, a.RaftIndex),
			compareFalseFirst(a.isLearner(), b.isLearner()),
			strings.Compare(a.Name, b.Name),
		)
	})
	return list
}

// isSource is true for a member that responds and whose pod stays.
func (c *Cluster) isSource(m *Member) bool {
	return m.RaftIndex > 0 && !c.Evidence(m.Name).IsEnding()
}

// isLearner is true for a member that is known to be a learner. The status does not say it
// of a member that has not started.
func (m *Member) isLearner() bool { return m.Started && m.Learner }

func compareFalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// estimateDataLoss says which data a cluster that recovers from source will not have. Best
// is the best source.
func (c *Cluster) estimateDataLoss(source, best *Member) string {
	text := fmt.Sprintf("Writes after raft index %d of member %s. ", source.RaftIndex, source.Name)
	if source.isLearner() {
		text += "That member is a learner, so how many it lacks is unknown: compare its data with the last backup."
	} else {
		text += "If that member served until the quorum was lost, these are at most the writes that were acknowledged just before. " +
			"Otherwise how many it lacks is unknown: compare its data with the last backup."
	}
	for _, name := range c.unavailable(source) {
		text += fmt.Sprintf(" Member %s is not available as a source and may hold newer writes.", name)
	}
	if best.RaftIndex > source.RaftIndex {
		text += fmt.Sprintf(" Member %s has %d raft entries that member %s does not have.",
			best.Name, best.RaftIndex-source.RaftIndex, source.Name)
	}
	if source.Limitation != "" {
		text += " " + source.Limitation + "."
	}
	return text
}

// unavailable returns the voters with a pod or PVC from which no recovery can continue now.
func (c *Cluster) unavailable(source *Member) []string {
	var names []string
	for i := range c.Members {
		m := &c.Members[i]
		if !m.isLearner() && !c.isSource(m) && (c.pod(m.Name) != nil || c.HasPVC(m.Name)) {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == source.Name })
}

// alarmCorrupt is how the alarm of a status begins that says that data differs.
const alarmCorrupt = "CORRUPT"

// FromStatus returns what the last status of a cluster says about its members, its pods and
// its PVCs. The status holds a raft index only of members from which a recovery could
// continue. limitation returns what a recovery with a version of etcd cannot keep.
func FromStatus(cluster *v1beta2.EtcdCluster, limitation func(version string) string) *Cluster {
	c := &Cluster{PermanentByStatus: new(cluster.Status.PermanentQuorumLossSince != nil)}
	for i := range cluster.Status.MemberStatuses {
		s := &cluster.Status.MemberStatuses[i]
		c.Members = append(c.Members, Member{
			Name:       s.Name,
			Unmanaged:  s.Unmanaged,
			Started:    s.Role != v1beta2.MemberRolePending,
			Learner:    s.Role == v1beta2.MemberRoleLearner,
			RaftIndex:  s.RaftIndex,
			DBSize:     s.DBSize,
			Limitation: limitation(cmp.Or(s.Version, cluster.Spec.Version)),
		})
		if s.Unmanaged && s.Healthy == corev1.ConditionTrue {
			c.Members[i].Response = FollowsLeader // only the controller asks it
		}
		c.DataDiffers = c.DataDiffers || slices.ContainsFunc(s.Alarms, func(alarm string) bool { return strings.HasPrefix(alarm, alarmCorrupt) })
		if s.Pod != "" {
			c.Pods = append(c.Pods, Pod{Name: s.Name, Node: s.Node, Evidence: EvidenceFrom(false, false)})
		}
		if s.Claim != "" {
			c.PVCs = append(c.PVCs, PVC{Name: s.Claim})
		}
	}
	return c
}

// APISource returns the source as the status of a recovery holds it.
func (p *RecoveryPlan) APISource() v1beta2.RecoverySource {
	if p.PVC != "" {
		return v1beta2.RecoverySource{Member: p.Source.Name, PVC: p.PVC}
	}
	return v1beta2.RecoverySource{Member: p.Source.Name, RaftIndex: p.Source.RaftIndex}
}

// APISurvivors returns the survivors as the status of a recovery holds them.
func (p *RecoveryPlan) APISurvivors() []v1beta2.RecoverySurvivor {
	var list []v1beta2.RecoverySurvivor
	for _, m := range p.Survivors {
		list = append(list, v1beta2.RecoverySurvivor{Name: m.Name, RaftIndex: m.RaftIndex, DBSize: m.DBSize})
	}
	return list
}

// DescribeSurvivors lists the members that could be the source of a recovery.
func (c *Cluster) DescribeSurvivors() string {
	sources := c.RankSources()
	if len(sources) == 0 {
		return "No member responds."
	}
	list := make([]string, 0, len(sources))
	for _, m := range sources {
		list = append(list, fmt.Sprintf("%s (raft index %d)", m.Name, m.RaftIndex))
	}
	return "Members that respond: " + strings.Join(list, ", ") + "."
}

// HasResponded is true for a member that responded, according to the last status. It
// has a raft index only if a recovery could also continue from it.
func HasResponded(m *v1beta2.MemberStatus) bool {
	return m.Healthy == corev1.ConditionTrue || m.RaftIndex > 0 || m.Reason == string(NoLeader)
}
