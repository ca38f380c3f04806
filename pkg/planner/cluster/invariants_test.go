// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// invariant is something that must hold for every plan, whatever was observed. It
// returns what is wrong, or "". The checks count for themselves and use none of the
// planner's own judgement.
type invariant struct {
	name  string
	check func(*facts, Plan) string
}

// facts is an observation, counted.
type facts struct {
	*Observed
	// voters are those of etcd, and own those that the controller added.
	voters, own, serving, unsettled int
	born                            bool
}

func countFacts(o *Observed, born bool) *facts {
	f := &facts{Observed: o, born: born}
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if m.Learner || !m.Started {
			f.unsettled++
		}
		if m.Learner {
			continue
		}
		f.voters++
		if !m.Unmanaged || o.Cluster.Spec.Bootstrap == nil {
			f.own++
		}
		if f.serves(m) {
			f.serving++
		}
	}
	return f
}

func (f *facts) serves(m *Member) bool {
	if m.Health != Healthy {
		return false
	}
	if m.Unmanaged && f.Cluster.Spec.Bootstrap != nil {
		return true
	}
	i := f.podIndex(m.Name)
	return i >= 0 && !f.Pods[i].Terminating && !f.Pods[i].Finished
}

func (f *facts) podIndex(name string) int {
	return slices.IndexFunc(f.Pods, func(p Pod) bool { return p.Owned && p.Name == name })
}

func (f *facts) pvcIndex(name string) int {
	return slices.IndexFunc(f.PVCs, func(c PVC) bool { return c.Owned && c.Name == name })
}

func (f *facts) memberByID(id uint64) *Member {
	for i := range f.Etcd.Members {
		if f.Etcd.Members[i].ID == id {
			return &f.Etcd.Members[i]
		}
	}
	return nil
}

func (f *facts) memberNamed(name string) *Member {
	for i := range f.Etcd.Members {
		if f.Etcd.Members[i].Name == name {
			return &f.Etcd.Members[i]
		}
	}
	return nil
}

// ledBy is the ID of the member that more than half of the serving voters follow.
func (f *facts) ledBy() uint64 {
	votes := map[uint64]int{}
	total := 0
	for i := range f.Etcd.Members {
		if m := &f.Etcd.Members[i]; !m.Learner && m.Health == Healthy && m.Leader != 0 {
			votes[m.Leader]++
			total++
		}
	}
	for id, n := range votes {
		if 2*n > total {
			return id
		}
	}
	return 0
}

func isMajority(serving, of int) bool { return 2*serving > of }

// planInvariants holds for every plan. An entry is named after the safety rule of
// docs/explanation/safety-rules.md that it belongs to, if there is one.
var planInvariants = []invariant{
	{"asleep", checkIdle},
	{"S3 one change", checkOneChange},
	{"S2 list", checkList},
	{"S2 remove", checkRemove},
	{"S2 restart", checkRestart},
	{"drained", checkDrained},
	{"S2 promote", checkPromote},
	{"S2 leader", checkLeader},
	{"disarm", checkDisarm},
	{"S1 data differs", checkDiffering},
	{"S4 bootstrap member", checkBootstrapMember},
	{"S5 delete pod", checkDeletePod},
	{"S5 delete PVC", checkDeletePVC},
	{"S5 create pod", checkCreatePod},
	{"S3 prepared", checkPrepared},
	{"S1 recover", checkRecover},
	{"S5 read volume", checkReadVolume},
	{"size", checkSize},
	{"S2 old members", checkOld},
	{"L1 speaks", checkSpeaks},
}

func checkIdle(f *facts, p Plan) string {
	if f.Cluster.DeletionTimestamp == nil && f.Cluster.Spec.Paused && len(p.Actions) > 0 ||
		f.Cluster.DeletionTimestamp != nil && slices.ContainsFunc(p.Actions, func(a Action) bool { return a != Action(FinishDeletion{}) }) {
		return "acts on a cluster that is paused or deleted"
	}
	return ""
}

// checkRecover: no recovery goes on while a quorum responds, and a recovery member is
// published only after it has served a write.
func checkRecover(f *facts, p Plan) string {
	proved := false
	for _, a := range p.Actions {
		switch a := a.(type) {
		case VerifyWrite:
			proved = true
		case RecordRecovery:
			phase := a.Recovery.Phase
			if f.Etcd.Linearizable && a.Recovery.Trigger != v1beta2.RecoveryTriggerRestore && phase != v1beta2.RecoveryPhaseAbandoned {
				return "goes on with a recovery although a quorum responds: " + string(phase)
			}
			if phase == v1beta2.RecoveryPhaseCutover && !proved {
				return "switches to a recovery member that has not served a write"
			}
		}
	}
	return ""
}

// checkReadVolume: a recovery reads a PVC only while no etcd runs on it, and stops its member only after a
// loss that is proven to be permanent.
func checkReadVolume(f *facts, p Plan) string {
	reading := ""
	if r := f.Record.Recovery; r.IsInProgress() && r.Phase == v1beta2.RecoveryPhaseFilling {
		reading = r.Source.PVC
	}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case CreatePod:
			if reading != "" && a.Name == reading {
				return "starts a member whose PVC a recovery reads"
			}
		case CreateRecoveryMember:
			if pod := podByName(f.Pods, a.Recovery.Source.PVC); pod != nil && !pod.Finished {
				return "reads the PVC of a member that may run"
			}
		case StopSource:
			if f.Etcd.Linearizable || !diagnoseQuorumLoss(f.Observed).Permanent {
				return "stops a member that a quorum may need"
			}
		}
	}
	return ""
}

func isMembershipChange(a Action) bool {
	switch a.(type) {
	case AddMember, PromoteMember, RemoveMember:
		return true
	default:
		return false
	}
}

// disturbs is true if an action changes which members serve: the membership, the leader or
// a running member.
func disturbs(a Action) bool {
	switch a := a.(type) {
	case MoveLeader:
		return true
	case UpgradePod:
		return a.Mode != RestartIdle
	case RecreatePod:
		return a.Mode != RestartIdle
	default:
		return isMembershipChange(a)
	}
}

func checkOneChange(f *facts, p Plan) string {
	n := 0
	for _, a := range p.Actions {
		if disturbs(a) {
			n++
		}
		if _, adds := a.(AddMember); adds && f.unsettled > 0 {
			return "adds a member while another member is joining"
		}
	}
	if n > 1 {
		return fmt.Sprintf("%d changes at once", n)
	}
	return ""
}

func checkList(f *facts, p Plan) string {
	for _, a := range p.Actions {
		if disturbs(a) && !f.Etcd.Linearizable {
			return fmt.Sprintf("%T without a list that a quorum confirmed", a)
		}
		if disturbs(a) && f.Cluster.Spec.Bootstrap == nil && slices.ContainsFunc(f.Etcd.Members, func(m Member) bool { return m.Unmanaged }) && !f.healsBesideUnmanaged(a) {
			return fmt.Sprintf("%T next to an unmanaged member", a)
		}
	}
	return ""
}

// healsBesideUnmanaged is true for what brings back as many own voters as are desired, while no
// unmanaged member is a learner or has not started.
func (f *facts) healsBesideUnmanaged(a Action) bool {
	own := 0
	for i := range f.Etcd.Members {
		m := &f.Etcd.Members[i]
		if m.Unmanaged && (m.Learner || !m.Started) {
			return false
		}
		if !m.Unmanaged && !m.Learner {
			own++
		}
	}
	switch a := a.(type) {
	case RemoveMember:
		m := f.memberByID(a.ID)
		return m != nil && !m.Unmanaged && (m.Learner || a.Reason == RemoveLost || !m.Started)
	case AddMember, PromoteMember:
		return own < int(*f.Cluster.Spec.Replicas)
	case MoveLeader:
		return true // to hand over before a lost member is removed
	default:
		return false
	}
}

func checkRemove(f *facts, p Plan) string {
	for _, a := range p.Actions {
		r, ok := a.(RemoveMember)
		if !ok {
			continue
		}
		m := f.memberByID(r.ID)
		if m == nil || m.Name != r.Name {
			return "removes a member that is not in the list"
		}
		if m.Learner {
			continue
		}
		serving := f.serving
		if f.serves(m) {
			serving--
		}
		if !isMajority(serving, f.voters-1) {
			return fmt.Sprintf("removes voter %s: %d of the %d that remain serve", m.Name, serving, f.voters-1)
		}
	}
	return ""
}

// saidStarted is true if the last status does not call a member pending.
func (f *facts) saidStarted(m *Member) bool {
	return slices.ContainsFunc(f.Cluster.Status.MemberStatuses, func(s v1beta2.MemberStatus) bool {
		return s.ID == hexID(m.ID) && s.Role != v1beta2.MemberRolePending
	})
}

func checkPromote(f *facts, p Plan) string {
	for _, a := range p.Actions {
		switch a := a.(type) {
		case PromoteMember:
			m := f.memberByID(a.ID)
			if m == nil || !m.Learner {
				return "promotes a member that is no learner"
			}
			serving := f.serving
			if f.serves(m) {
				serving++
			}
			if !isMajority(serving, f.voters+1) {
				return fmt.Sprintf("promotes %s: %d of %d voters would serve", m.Name, serving, f.voters+1)
			}
			if !f.saidStarted(m) {
				return "promotes " + m.Name + " before the status says that it has started"
			}
		case AddMember:
			if a.As == JoinAsVoter && f.serving < f.voters {
				return fmt.Sprintf("adds a voter while %d of %d serve", f.serving, f.voters)
			}
			if !isMajority(f.serving, f.voters) {
				return fmt.Sprintf("adds a member while %d of %d voters serve", f.serving, f.voters)
			}
			if f.memberNamed(a.Name) != nil || f.podIndex(a.Name) >= 0 || f.pvcIndex(a.Name) >= 0 {
				return "adds a member under a name that was used before"
			}
		}
	}
	return ""
}

// checkLeader: the leader is neither removed nor restarted while it leads and another member
// can take over, and it is not chosen while another member can go.
func checkLeader(f *facts, p Plan) string {
	led := f.ledBy()
	for _, a := range p.Actions {
		name := ""
		switch a := a.(type) {
		case RemoveMember:
			if a.Reason == RemoveScaleDown || a.Reason == RemoveReplaced {
				name = a.Name
			}
		case UpgradePod:
			name = a.Name
		case RecreatePod:
			name = a.Name
		}
		m := f.memberNamed(name)
		if m == nil || m.ID != led {
			continue
		}
		if i := f.podIndex(name); i < 0 || f.Pods[i].Terminating || f.Pods[i].Finished {
			continue // the others have not noticed its absence yet
		}
		if m.Health == Healthy && f.serving > 1 {
			return "the leader " + name + " goes without handing over"
		}
		if _, removed := a.(RemoveMember); removed && f.voters > 1 {
			return "the leader " + name + " is the one to go"
		}
	}
	return ""
}

func checkBootstrapMember(f *facts, p Plan) string {
	for _, a := range p.Actions {
		switch a := a.(type) {
		case CreateBootstrapPod:
			if f.born {
				return "makes a bootstrap member of a cluster that has served"
			}
			if a.Name != f.BootstrapName || f.podIndex(a.Name) >= 0 {
				return "makes a bootstrap member that is not the one of the record, or a second one"
			}
		case WriteRecord:
			if a.Record.ClusterID != "" {
				continue
			}
			if a.Record.BootstrapMember != f.BootstrapName {
				return "records another bootstrap member"
			}
			for i := range f.Pods {
				if f.Pods[i].Owned && f.Pods[i].Name != f.BootstrapName {
					return "names a bootstrap member next to pod " + f.Pods[i].Name
				}
			}
			if f.born {
				return "names a bootstrap member for a cluster that has served"
			}
		}
	}
	return ""
}

func checkSize(f *facts, p Plan) string {
	size, room := int(*f.Cluster.Spec.Replicas), 0
	for i := range f.Etcd.Members {
		if f.toReplace(f.Etcd.Members[i].Name) && !f.Etcd.Members[i].Learner {
			room = 1
		}
	}
	for _, a := range p.Actions {
		if size == 0 && disturbs(a) {
			return fmt.Sprintf("%T on a cluster that sleeps", a)
		}
		switch a := a.(type) {
		case AddMember:
			if f.own >= size+room {
				return "adds a surplus member"
			}
		case PromoteMember:
			if f.own >= size+room {
				return "promotes a surplus member"
			}
		case RemoveMember:
			if (a.Reason == RemoveScaleDown || a.Reason == RemoveReplaced) && f.own <= size {
				return "shrinks below the size"
			}
			if m := f.memberByID(a.ID); a.Reason == RemoveAway && (!f.isAway(a.Name) || m != nil && !m.Learner && m.Started && f.own <= size) {
				return "removes a member that may come back, or before another member votes"
			}
			if a.Reason == RemoveReplaced && !f.toReplace(a.Name) {
				return "replaces a member that is as declared"
			}
		}
	}
	return ""
}

// isStep is false for what goes along with every plan and brings no member nearer to
// what is declared.
func isStep(a Action) bool {
	switch a := a.(type) {
	case RepairPeerService, EnsureClientService, EnsurePodDisruptionBudget, DeletePodDisruptionBudget, FindMember, RepairPVC:
		return false
	case LabelPod:
		return a.Role == PodDraining
	case DeletePod:
		return a.Why != DeletePrepared
	case DeletePVC:
		return a.Why != DeletePVCPrepared
	default:
		return true
	}
}

// checkSpeaks: a cluster that is not as declared is acted upon, or the status says
// what it waits for; and whatever is waited for is looked at again.
func checkSpeaks(f *facts, p Plan) string {
	if slices.ContainsFunc(p.Actions, isStep) || p.Wait != nil || p.Rule == "paused" || p.Rule == "deleting" || p.Rule == "hibernate" {
		return ""
	}
	if p.RequeueAfter <= 0 {
		return "never looks again"
	}
	if f.Etcd.Linearizable && (p.Rule == "joining" || p.Rule == "take-over") && slices.ContainsFunc(f.Etcd.Members, func(m Member) bool { return m.Learner && m.Started && !f.saidStarted(&m) }) {
		return "" // the status first reports the members that have started
	}
	if f.own != int(*f.Cluster.Spec.Replicas) || f.unsettled > 0 || !f.Etcd.Linearizable {
		return "does nothing about a cluster that is not as declared"
	}
	for i := range f.Etcd.Members {
		pod := f.podIndex(f.Etcd.Members[i].Name)
		if pod < 0 {
			return "does nothing about a member without a pod"
		}
		if f.Pods[pod].Template != testTemplate {
			return "does nothing about a pod that is not as declared"
		}
	}
	return ""
}
