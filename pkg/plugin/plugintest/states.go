// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Now is the time of the tests.
var Now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// State is a cluster, what its members say, and its events.
type State struct {
	Cluster *v1beta2.EtcdCluster
	Health  *v1beta2.EtcdClusterHealth
	Events  corev1.EventList
}

// States returns the states that the screens show.
func States() map[string]*State {
	return map[string]*State{
		"healthy": Healthy(), "degraded": Degraded(), "quorum-lost": QuorumLost(), "upgrading": Upgrading(), "restoring": Restoring(), "hibernated": Hibernated(),
		"full": Full(),
	}
}

// ago returns a time before Now.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-d)) }

const (
	version = "3.6.16"
	gi      = int64(1) << 30
	// path of the cluster in the API.
	path = "/apis/etcd.database.coreos.com/v1beta2/namespaces/prod/etcdclusters/main"
)

// names of the members; the first one leads.
var names = []string{"main-a7k2", "main-f9x4", "main-q3m8"}

// Healthy is a cluster with three members, certificates and backups.
func Healthy() *State {
	c := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "main", Namespace: Namespace, UID: "0b6c", ResourceVersion: "41", Generation: 3, CreationTimestamp: ago(300 * time.Hour)},
		Spec: v1beta2.ClusterSpec{
			Replicas: ptr.To[int32](3), Version: version, TLS: &v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}},
			Backup: &v1beta2.ClusterBackupPolicy{StorageType: v1beta2.BackupStorageTypeS3, Schedule: "@daily"},
		},
		Status: v1beta2.ClusterStatus{
			Phase: v1beta2.ClusterPhaseRunning, ObservedGeneration: 3, Replicas: 3, ServiceName: "main-client", ClientPort: 2379,
			Members: v1beta2.MembersStatus{Ready: names}, CurrentVersion: version, Leader: names[0], Tolerance: ptr.To[int32](1), DBSize: gi,
			LastBackup: &v1beta2.LastBackup{Name: "main-scheduled", Time: ago(9 * time.Hour), Revision: 81233, Verified: true, VerifiedBy: v1beta2.VerificationChecksum},
		},
	}
	h := &v1beta2.EtcdClusterHealth{
		ObjectMeta: metav1.ObjectMeta{Name: "main", Namespace: Namespace}, Verdict: v1beta2.VerdictHealthy,
		Message: "3 of 3 voters serve and follow " + names[0], Tolerance: ptr.To[int32](1), Leader: names[0], DesiredSize: 3, Voters: 3, Serving: 3,
		QuorumResponded: true, ClusterID: "d8f1", ProbedAt: metav1.NewMicroTime(Now), Took: metav1.Duration{Duration: 12 * time.Millisecond},
	}
	for i, name := range names {
		role := v1beta2.MemberRoleFollower
		if i == 0 {
			role = v1beta2.MemberRoleLeader
		}
		id, node := "8e9e05c52164694"+string(rune('a'+i)), "node-"+string(rune('1'+i))
		c.Status.MemberStatuses = append(c.Status.MemberStatuses, v1beta2.MemberStatus{
			Name: name, ID: id, Pod: name, Node: node, Claim: name, Version: version, Role: role, Healthy: corev1.ConditionTrue, DBSize: gi,
		})
		h.Members = append(h.Members, v1beta2.MemberHealth{
			Name: name, ID: id, Responded: true, Role: role, Leader: names[0], ClusterID: "d8f1", Term: 7, RaftIndex: 90210, RaftApplied: 90210,
			DBSize: gi, DBSizeInUse: gi / 2, Quota: 2 * gi, Version: version, CertificateExpiry: ptr.To(metav1.NewTime(Now.Add(61 * 24 * time.Hour))),
			Pod:   &v1beta2.MemberPod{Name: name, Phase: corev1.PodRunning, Ready: true, Node: node, Address: "10.0.0.1"},
			Claim: &v1beta2.MemberPVC{Name: name, Phase: corev1.ClaimBound, Capacity: "8Gi"},
		})
	}
	s := &State{Cluster: c, Health: h}
	for _, t := range []v1beta2.ClusterConditionType{
		v1beta2.ClusterConditionReady, v1beta2.ClusterConditionAvailable, v1beta2.ClusterConditionBackupHealthy, v1beta2.ClusterConditionCertificatesValid,
	} {
		s.Condition(t, corev1.ConditionTrue, "AsDeclared", "")
	}
	for _, t := range []v1beta2.ClusterConditionType{
		v1beta2.ClusterConditionProgressing, v1beta2.ClusterConditionDegraded, v1beta2.ClusterConditionQuorumLost, v1beta2.ClusterConditionRecovering,
		v1beta2.ClusterConditionScaling, v1beta2.ClusterConditionUpgrading, v1beta2.ClusterConditionPaused,
	} {
		s.Condition(t, corev1.ConditionFalse, "AsDeclared", "")
	}
	return s
}

// Condition sets a condition that has its status for four minutes.
func (s *State) Condition(t v1beta2.ClusterConditionType, status corev1.ConditionStatus, reason, message string) {
	at := Now.Add(-4 * time.Minute).Format(time.RFC3339)
	c := v1beta2.ClusterCondition{
		Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: at, LastUpdateTime: at, ObservedGeneration: s.Cluster.Generation,
	}
	for i := range s.Cluster.Status.Conditions {
		if s.Cluster.Status.Conditions[i].Type == t {
			s.Cluster.Status.Conditions[i] = c
			return
		}
	}
	s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions, c)
}

// fail makes a member unresponsive.
func (s *State) fail(i int) {
	h := &s.Health.Members[i]
	pod := *h.Pod
	pod.Ready, pod.Restarts, pod.Message = false, 6, "back-off 2m40s restarting failed container"
	*h = v1beta2.MemberHealth{
		Name: h.Name, ID: h.ID, Role: v1beta2.MemberRoleFollower, Error: "dial tcp 10.0.0.3:2379: connect: connection refused", Pod: &pod, Claim: h.Claim,
	}
	m := &s.Cluster.Status.MemberStatuses[i]
	m.Healthy, m.Reason, m.Message = corev1.ConditionFalse, "Unresponsive", "it does not respond"
}

// Degraded is a cluster with a member that restarts again and again.
func Degraded() *State {
	s := Healthy()
	s.fail(2)
	s.Health.Verdict, s.Health.Message = v1beta2.VerdictDegraded, "2 of 3 voters serve; "+names[2]+" does not respond"
	s.Health.Tolerance, s.Health.Serving = ptr.To[int32](0), 2
	s.Health.NextSteps = []v1beta2.NextStep{
		{Why: "etcd of member " + names[2] + " restarts again and again: see its last log", Command: "kubectl -n prod logs " + names[2] + " -c etcd --previous --tail=50"},
		{Why: "one more failure loses the quorum: save a copy outside of the cluster", Command: "kubectl get --raw '" + path + "/proxy/snapshot' > main.db"},
	}
	s.Condition(v1beta2.ClusterConditionDegraded, corev1.ConditionTrue, "MembersUnhealthy", "voters that do not serve: "+names[2])
	s.Condition(v1beta2.ClusterConditionReady, corev1.ConditionFalse, "MembersUnhealthy", "members that are not healthy and as declared: "+names[2])
	s.Cluster.Status.Members = v1beta2.MembersStatus{Ready: names[:2], Unready: names[2:]}
	s.Events.Items = []corev1.Event{
		event("Pod", names[2], corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container etcd in pod "+names[2], 12, time.Minute),
		event("Pod", names[2], corev1.EventTypeNormal, "Pulled", "Container image is present", 6, time.Minute),
		event("Pod", "other", corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container", 3, time.Minute),
	}
	return s
}

func event(kind, name, level, reason, message string, count int32, age time.Duration) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name + "." + reason, Namespace: Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name, Namespace: Namespace},
		Type:           level, Reason: reason, Message: message, Count: count, LastTimestamp: ago(age),
	}
}

// QuorumLost is a cluster with one of three members left.
func QuorumLost() *State {
	s := Degraded()
	s.fail(1)
	for i := range 2 {
		s.Health.Members[i+1].Pod, s.Health.Members[i+1].Claim = nil, nil
		s.Health.Members[i+1].Error = "it has no pod that could be probed"
	}
	survivor := &s.Health.Members[0]
	survivor.Role, survivor.Leader = v1beta2.MemberRoleFollower, ""
	s.Cluster.Status.MemberStatuses[0].Healthy = corev1.ConditionFalse
	s.Cluster.Status.Leader = ""
	s.Health.Verdict, s.Health.Message, s.Health.Leader = v1beta2.VerdictQuorumLost, "no read passed a quorum: 1 of 3 voters responds", ""
	s.Health.Tolerance, s.Health.Serving, s.Health.QuorumResponded = ptr.To[int32](-1), 0, false
	s.Health.NextSteps = []v1beta2.NextStep{
		{Why: "first save what each survivor has", Command: "kubectl get --raw '" + path + "/proxy/snapshot?member=main-a7k2' > main-a7k2.db"},
		{
			Why:     "2 of 3 voters and their data no longer exist. See what a recovery would do, then send the request without dryRun.",
			Command: "echo '{}' | kubectl create --raw '" + path + "/recover?dryRun=All' -f -",
		},
		{Why: "the controller waits: 2 of 3 voters and their data no longer exist. Remedy: Recover from a survivor: create etcdclusters/recover."},
	}
	lost := "2 of 3 voters and their data no longer exist. A quorum needs 2."
	survivors := " Member main-a7k2 responds (raft index 90210)."
	recover := " Recover from a survivor: create etcdclusters/recover."
	s.Condition(v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue, "QuorumLost", lost+survivors+recover)
	s.Condition(v1beta2.ClusterConditionAvailable, corev1.ConditionFalse, "QuorumLost", lost)
	s.Condition(v1beta2.ClusterConditionDegraded, corev1.ConditionTrue, "QuorumLost", lost)
	s.Condition(v1beta2.ClusterConditionStalled, corev1.ConditionTrue, "QuorumLost", lost)
	s.Cluster.Status.Phase, s.Cluster.Status.Tolerance = v1beta2.ClusterPhaseFailed, ptr.To[int32](-1)
	s.Cluster.Status.BlockedBy = &v1beta2.BlockedBy{
		Reason: "QuorumLost", Message: lost, Since: ago(4 * time.Minute), Unblock: strings.TrimSpace(recover),
	}
	s.Events.Items = []corev1.Event{event("EtcdCluster", "main", corev1.EventTypeWarning, "QuorumLost", lost, 1, 4*time.Minute)}
	return s
}

// Upgrading is a cluster on its way to another version.
func Upgrading() *State {
	s := Healthy()
	s.Cluster.Spec.Version, s.Cluster.Status.TargetVersion = "3.6.18", "3.6.18"
	s.Health.Members[1].Version, s.Cluster.Status.MemberStatuses[1].Version = "3.6.18", "3.6.18"
	waits := "member " + names[2] + " restarts with another version"
	s.Condition(v1beta2.ClusterConditionUpgrading, corev1.ConditionTrue, "VersionChange", "from 3.6.16 to 3.6.18")
	s.Condition(v1beta2.ClusterConditionProgressing, corev1.ConditionTrue, "VersionChange", "")
	s.Condition(v1beta2.ClusterConditionReconciling, corev1.ConditionTrue, "VersionChange", waits)
	s.Condition(v1beta2.ClusterConditionReady, corev1.ConditionFalse, "VersionChange", waits)
	s.Cluster.Status.BlockedBy = &v1beta2.BlockedBy{Reason: "WaitingForMember", Message: waits, Since: ago(5 * time.Second)}
	return s
}

// Restoring is a cluster in which a backup replaces the data.
func Restoring() *State {
	s := Healthy()
	s.Cluster.Status.Recovery = &v1beta2.RecoveryStatus{
		ID: "r1", Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseFilling, Message: "recovery member main-z1 does not serve yet",
		Source: v1beta2.RecoverySource{Restore: "main-20260304"}, RecoveryMember: "main-z1", OldMembers: names, RequestedAt: ago(time.Minute),
	}
	s.Condition(v1beta2.ClusterConditionRecovering, corev1.ConditionTrue, "Filling",
		"the cluster goes on from EtcdRestore main-20260304 in the new member main-z1: recovery member main-z1 does not serve yet")
	s.Condition(v1beta2.ClusterConditionProgressing, corev1.ConditionTrue, "WaitingForRecoveryMember", "")
	s.Condition(v1beta2.ClusterConditionReconciling, corev1.ConditionTrue, "WaitingForRecoveryMember", "")
	s.Condition(v1beta2.ClusterConditionReady, corev1.ConditionFalse, "WaitingForRecoveryMember", "")
	s.Cluster.Status.Operation = &v1beta2.ClusterOperation{
		Type: v1beta2.OperationDefrag, ID: "o1", Phase: v1beta2.OperationFailed, Message: "main-q3m8 did not respond within an hour", RequestedAt: ago(30 * time.Hour),
	}
	s.Cluster.Status.LastBackup.Verified = false
	return s
}

// Hibernated is a cluster of size 0.
func Hibernated() *State {
	s := Healthy()
	s.Cluster.Spec.Replicas = ptr.To[int32](0)
	s.Cluster.Status.Phase, s.Cluster.Status.MemberStatuses, s.Cluster.Status.Members = v1beta2.ClusterPhaseHibernated, nil, v1beta2.MembersStatus{}
	s.Cluster.Status.Leader, s.Cluster.Status.Tolerance = "", nil
	s.Health.Verdict, s.Health.Message, s.Health.Leader, s.Health.Tolerance = v1beta2.VerdictHibernated, "spec.size is 0", "", nil
	s.Health.DesiredSize, s.Health.Voters, s.Health.Serving, s.Health.QuorumResponded = 0, 0, 0, false
	s.Health.NextSteps = []v1beta2.NextStep{{Why: "wake it", Command: "kubectl -n prod scale etcd main --replicas=3"}}
	for i := range s.Health.Members {
		m := &s.Health.Members[i]
		*m = v1beta2.MemberHealth{Name: m.Name, Error: "it has no pod that could be probed", Claim: m.Claim}
	}
	s.Condition(v1beta2.ClusterConditionAvailable, corev1.ConditionFalse, "Hibernated", "the cluster was scaled to 0; its volumes are kept")
	return s
}

// Full is a cluster whose database has reached its quota.
func Full() *State {
	s := Healthy()
	for i := range s.Health.Members {
		m := &s.Health.Members[i]
		m.DBSize, m.DBSizeInUse, m.Alarms = 2*gi, 2*gi, []string{"NOSPACE raised by " + names[0]}
		s.Cluster.Status.MemberStatuses[i].DBSize, s.Cluster.Status.MemberStatuses[i].Alarms = 2*gi, []string{"NOSPACE (raised by 8e9e05c52164694a)"}
	}
	s.Health.Verdict, s.Health.Message = v1beta2.VerdictDegraded, "etcd rejects writes: alarm NOSPACE raised by "+names[0]
	s.Health.NextSteps = []v1beta2.NextStep{
		{
			Why:     "most of the database is in use: raise the quota, if the volume has room (at most 8Gi is usual)",
			Command: `kubectl -n prod patch etcd main --type=merge -p '{"spec":{"etcd":{"quotaBackendBytes":"4Gi"}}}'`,
		},
		{Why: "release unused space, one member at a time", Command: "echo '{}' | kubectl create --raw '" + path + "/defrag' -f -"},
	}
	full := "etcd rejects writes (alarm NOSPACE), and serves reads and deletions: the database of " + names[0] + " has reached its quota of 2Gi."
	s.Cluster.Status.DBSize, s.Cluster.Status.Reason = 2*gi, full
	s.Condition(v1beta2.ClusterConditionReady, corev1.ConditionFalse, "DatabaseFull", full)
	s.Condition(v1beta2.ClusterConditionStalled, corev1.ConditionTrue, "DatabaseFull", full)
	s.Condition(v1beta2.ClusterConditionAvailable, corev1.ConditionFalse, "DatabaseFull", full)
	s.Condition(v1beta2.ClusterConditionDegraded, corev1.ConditionTrue, "DatabaseFull", full)
	return s
}
