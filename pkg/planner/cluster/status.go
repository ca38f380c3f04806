// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// clientPort is the port of the client Service.
const clientPort = 2379

// Status says what was observed, and what the plan made of it waits for. Fields
// that did not change noticeably keep their old value, so that a cluster at rest
// yields the same status again and nothing needs to be written.
func Status(o Observed, plan Plan) v1beta2.ClusterStatus {
	old := &o.Cluster.Status
	status := v1beta2.ClusterStatus{
		ObservedGeneration: o.Cluster.Generation,
		Selector:           "app=etcd,etcd_cluster=" + o.Cluster.Name,
		ControlPaused:      o.Cluster.Spec.Paused,
		LastBackup:         old.LastBackup.DeepCopy(),
		Operation:          plan.Operation,
	}
	if status.Operation == nil {
		status.Operation = followOperation(&o)
	}
	if o.ClientService == Current || o.ClientService == Drifted {
		status.ServiceName = o.Cluster.Name + "-client"
		status.ClientPort = clientPort
	}
	memberStatus(&o, &status)
	versions(&o, &status)
	status.Phase, status.Reason = phase(&o)
	status.BlockedBy = blockedBy(&o, plan)
	status.Joining = joiningAfter(&o, plan)
	status.Certificates = certificateStatuses(o.Certificates)
	status.Clients = clientStatuses(&o)
	status.Binding = binding(&o, status.Clients)
	status.Recovery = recoveryStatus(&o, plan)
	status.Restores = clusterRestores(&o, status.Recovery)
	status.PermanentQuorumLossSince = permanentLossSince(&o)
	status.Conditions = conditions(&o, plan)
	return status
}

// recoveryStatus repeats what stands in the record, and says what it waits for.
func recoveryStatus(o *Observed, plan Plan) *v1beta2.RecoveryStatus {
	r := recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery).DeepCopy()
	if recovery.IsUnauthorized(r) {
		return o.Cluster.Status.Recovery.DeepCopy()
	}
	if r.IsInProgress() && plan.Rule == RuleRecovery && plan.Wait != nil {
		r.Message = plan.Wait.Message
	}
	return r
}

// clusterRestores are the restores whose data the cluster has, and the one under way. Its time is that at which the
// old members have ended: no backup that begins later reads their data. A restore that was abandoned is not told of.
func clusterRestores(o *Observed, r *v1beta2.RecoveryStatus) []v1beta2.ClusterRestore {
	var restores []v1beta2.ClusterRestore
	for _, restore := range toldRestores(o) {
		switch {
		case restore.Time != nil && restore.Time.After(o.Now) && !isIn(o.Cluster.Status.Restores, restore.UID):
			continue // forged, or of a clock that was ahead: it would hide the backups until then
		case restore.Time != nil:
		case r == nil || r.ID != restore.UID || r.Phase == v1beta2.RecoveryPhaseAbandoned:
			continue
		case r.Phase == v1beta2.RecoveryPhaseCleaning || r.Phase == v1beta2.RecoveryPhaseSucceeded:
			restore.RevisionBump, restore.Time = r.RevisionBump, r.CompletionTime.DeepCopy()
			if restore.Time == nil {
				restore.Time = &metav1.Time{Time: o.Now.Truncate(time.Second)}
			}
		}
		if restore.Time != nil && resources.IsFuture(restore.Time.Time, o.Now) {
			restore.Time = notLater(o.Now.Truncate(time.Second), restores)
		}
		restores = append(restores, restore)
	}
	return restores[:min(len(restores), v1beta2.MaxClusterRestores)]
}

// notLater returns a time for a restore that a clock of the future has dated: no backup would count until then. The
// newer restores stay newer.
func notLater(now time.Time, newer []v1beta2.ClusterRestore) *metav1.Time {
	for i := range newer {
		if at := newer[i].Time; at != nil && at.Time.Before(now) {
			now = at.Time
		}
	}
	return &metav1.Time{Time: now}
}

// toldRestores are the restores that the status tells of, and those that only the record has kept. The status of a
// cluster is lost with a backup tool that leaves it out, or with the storage of the API. The newest are first.
func toldRestores(o *Observed) []v1beta2.ClusterRestore {
	told := slices.Clone(o.Cluster.Status.Restores)
	for _, kept := range o.Record.Restores {
		if !isIn(told, kept.UID) {
			told = append(told, kept)
		}
	}
	if len(told) > len(o.Cluster.Status.Restores) {
		slices.SortStableFunc(told, func(a, b v1beta2.ClusterRestore) int { return since(b).Compare(since(a)) })
	}
	return told
}

// since orders restores: one that is under way is newer than all others.
func since(r v1beta2.ClusterRestore) time.Time {
	if r.Time == nil {
		return time.Unix(math.MaxInt32, 0)
	}
	return r.Time.Time
}

// RepeatsRestore is true of the recovery of an EtcdRestore that asks for the same as an earlier one, whose data the
// cluster has had. Only a permanent quorum loss lets it begin.
func RepeatsRestore(o *Observed, r *v1beta2.RecoveryStatus) bool {
	told := toldRestores(o)
	i := slices.IndexFunc(told, func(t v1beta2.ClusterRestore) bool { return r != nil && t.UID == r.ID })
	return i >= 0 && slices.ContainsFunc(told, func(t v1beta2.ClusterRestore) bool {
		return t.UID != r.ID && t.Time != nil && t.Name == told[i].Name && t.Request == told[i].Request
	})
}

func isIn(restores []v1beta2.ClusterRestore, uid string) bool {
	return slices.ContainsFunc(restores, func(r v1beta2.ClusterRestore) bool { return r.UID == uid })
}

// DropsRequest is true if a status no longer holds the recovery that a user or an EtcdRestore
// requested: another recovery was under way.
func DropsRequest(before, after *v1beta2.ClusterStatus) bool {
	asked, shown := before.Recovery, after.Recovery
	return asked != nil && asked.Phase == v1beta2.RecoveryPhasePending && (shown == nil || shown.ID != asked.ID)
}

func memberStatus(o *Observed, status *v1beta2.ClusterStatus) {
	leader := findLeader(o.Etcd.Members)
	var ahead uint64
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		ahead = max(ahead, m.RaftIndex)
		if !m.Learner && (!m.Unmanaged || !takesOver(o.Cluster)) {
			status.Replicas++
		}
	}
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		s := oneMember(o, m, leader, ahead)
		status.MemberStatuses = append(status.MemberStatuses, s)
		switch {
		case m.Unmanaged && takesOver(o.Cluster): // memberStatuses tells about it
		case !m.Unmanaged && quorumOf(o).stateOf(m).IsServing() && podByName(o.Pods, m.Name).Ready:
			status.Members.Ready = append(status.Members.Ready, m.Name)
		default:
			status.Members.Unready = append(status.Members.Unready, m.Name)
		}
		status.DBSize = max(status.DBSize, s.DBSize)
	}
	slices.Sort(status.Members.Ready)
	slices.Sort(status.Members.Unready)
	slices.SortFunc(status.MemberStatuses, func(a, b v1beta2.MemberStatus) int { return strings.Compare(a.Name, b.Name) })
	if leader != nil {
		status.Leader = leader.Name
	}
	status.Tolerance = tolerance(o)
}

// tolerance is how many more voters may fail. It is not known while etcd cannot be
// asked and nothing proves that the quorum is lost.
func tolerance(o *Observed) *int32 {
	voters := len(listVoters(o.Etcd.Members))
	if voters == 0 || (!o.Etcd.Linearizable && !diagnoseQuorumLoss(o).Certain) {
		return nil
	}
	t := diagnosis.FaultTolerance(voters, quorumOf(o).countServing(), o.Etcd.Linearizable)
	return &t
}

func oneMember(o *Observed, m *Member, leader *Member, ahead uint64) v1beta2.MemberStatus {
	s := v1beta2.MemberStatus{
		Name:      m.Name,
		ID:        hexID(m.ID),
		Version:   m.Version,
		Role:      role(m, leader),
		Healthy:   corev1.ConditionUnknown,
		Reason:    string(m.Reason),
		Message:   m.Message,
		DBSize:    m.DBSize,
		Unmanaged: m.Unmanaged,
		Alarms:    AlarmTexts(m),
	}
	switch m.Health {
	case Healthy:
		s.Healthy = corev1.ConditionTrue
	case Unhealthy:
		s.Healthy = corev1.ConditionFalse
	case Unknown:
	}
	if pod := podByName(o.Pods, m.Name); pod != nil {
		s.Pod, s.Node = pod.Name, pod.Node
	}
	if pvcByName(o.PVCs, m.Name) != nil {
		s.Claim = m.Name
	}
	if !o.Etcd.Linearizable && !evidenceOf(podByName(o.Pods, m.Name)).IsEnding() {
		s.RaftIndex = reportedRaftIndex(o, m) // that of a member from which a recovery may continue
	}
	if m.RaftIndex > 0 && ahead-m.RaftIndex >= diagnosis.NoticeableLag {
		s.RaftLag = int64(ahead - m.RaftIndex)
	}
	if before := reportedMember(o.Cluster.Status.MemberStatuses, m); before != nil {
		keepUnlessNoticeable(&s, before)
	}
	return s
}

// raftIndexPause is how long the status keeps the raft index of a member that commits more.
const raftIndexPause = 30 * time.Second

// reportedRaftIndex returns the raft index that the status reports. A quorum that the controller
// does not reach may serve, and then the index grows all the time: it is written again after
// raftIndexPause, or with another reason. An index that has stopped is exact after that time.
func reportedRaftIndex(o *Observed, m *Member) int64 {
	if m.Unmanaged {
		return 0 // no recovery continues from it
	}
	index, member, written := signed(m.RaftIndex), reportedMember(o.Cluster.Status.MemberStatuses, m), reportedCondition(o.Cluster.Status.Conditions, v1beta2.ClusterConditionQuorumLost)
	if member == nil || member.RaftIndex == 0 || index <= member.RaftIndex || written.Reason != diagnoseQuorumLoss(o).Reason {
		return index
	}
	at, err := time.Parse(time.RFC3339, written.LastUpdateTime)
	if age := o.Now.Sub(at); err != nil || age < 0 || age >= raftIndexPause {
		return index
	}
	return member.RaftIndex
}

// keepUnlessNoticeable keeps figures that change all the time at their last written
// value until they differ by a tenth: a status write for every one would be noise.
func keepUnlessNoticeable(s, before *v1beta2.MemberStatus) {
	if s.DBSize == 0 || isNear(s.DBSize, before.DBSize) {
		s.DBSize = before.DBSize
	}
	if isNear(s.RaftLag, before.RaftLag) {
		s.RaftLag = before.RaftLag
	}
	if s.Version == "" {
		s.Version = before.Version
	}
}

func isNear(a, b int64) bool {
	diff := max(a, b) - min(a, b)
	return 10*diff < max(a, b)
}

func role(m, leader *Member) v1beta2.MemberRole {
	switch {
	case !m.Started:
		return v1beta2.MemberRolePending
	case m.Learner:
		return v1beta2.MemberRoleLearner
	case leader != nil && m.ID == leader.ID:
		return v1beta2.MemberRoleLeader
	default:
		return v1beta2.MemberRoleFollower
	}
}

// versions fills what runs now and, while they differ, what is being moved to.
func versions(o *Observed, status *v1beta2.ClusterStatus) {
	status.CurrentVersion = o.Cluster.Status.CurrentVersion
	if low := versionsOf(o).lowestRun(); low != nil {
		status.CurrentVersion = low.String()
	}
	if takesOver(o.Cluster) && !hasOtherVersion(o) {
		return // only old members run another version
	}
	if target := parse(o.Cluster.Spec.Version); target != nil && status.CurrentVersion != "" && !isSameVersion(status.CurrentVersion, target) {
		status.TargetVersion = target.String()
	}
}

// hasOtherVersion is true if a member that this controller added runs another version than the
// declared one.
func hasOtherVersion(o *Observed) bool {
	own := versionsOf(o)
	own.members = slices.DeleteFunc(slices.Clone(own.members), func(m Member) bool { return m.Unmanaged })
	low, target := own.lowestRun(), parse(o.Cluster.Spec.Version)
	return low != nil && target != nil && !low.EqualTo(target)
}

func phase(o *Observed) (v1beta2.ClusterPhase, string) {
	switch {
	case !isBootstrapped(o):
		return v1beta2.ClusterPhaseCreating, ""
	case desiredSize(o.Cluster) == 0:
		return v1beta2.ClusterPhaseHibernated, ""
	case o.Etcd.Linearizable && writesRejected(o) != nil:
		return v1beta2.ClusterPhaseRunning, writesRejected(o).message
	case o.Etcd.Linearizable:
		return v1beta2.ClusterPhaseRunning, ""
	}
	if loss := diagnoseQuorumLoss(o); loss.Certain {
		return v1beta2.ClusterPhaseFailed, loss.Message
	}
	return v1beta2.ClusterPhaseRunning, ""
}

// blockedBy says what the plan waits for. It keeps the time since which the same thing has been waited for.
func blockedBy(o *Observed, plan Plan) *v1beta2.BlockedBy {
	if plan.Wait == nil {
		return nil
	}
	w := plan.Wait
	return &v1beta2.BlockedBy{
		Reason:  string(w.Reason),
		Message: w.Message,
		Unblock: rowOf(w.Reason).RemedyOf(w.Remedy, waitsTooLong(o, plan)),
		Since:   waitingSince(o, w.Reason),
	}
}

// blockedSince is since when a status has named the same wait.
func blockedSince(now time.Time, before *v1beta2.BlockedBy, reason Reason) metav1.Time {
	if before != nil && isOneWait(Reason(before.Reason), reason) {
		return before.Since
	}
	return metav1.NewTime(now.Truncate(time.Second))
}

// names lists members for a message.
func names(members []*Member) string {
	list := make([]string, 0, len(members))
	for _, m := range members {
		list = append(list, m.Name)
	}
	return strings.Join(list, ", ")
}

func sizes(have, want int) string {
	return fmt.Sprintf("Current cluster size: %d, desired cluster size: %d", have, want)
}
