// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const gib = 1 << 30

var errUnresponsive = &etcd.Error{Op: "status", Kind: etcd.ErrTimeout}

// healthy is a cluster of n voters with volumes, called m0 to m<n-1> with IDs from 1,
// in which everything is well and m0 leads.
func healthy(n int) *Probe {
	p := &Probe{
		Cluster: &v1beta2.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "uid"},
			Spec:       v1beta2.ClusterSpec{Replicas: ptr.To(int32(n))},
			Status:     v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning},
		},
		ProbedAt:  time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC),
		Took:      40 * time.Millisecond,
		PodsKnown: true,
		Confirmed: &etcd.Membership{ClusterID: 0xc1},
	}
	for i := range n {
		name := fmt.Sprintf("m%d", i)
		p.Confirmed.Members = append(p.Confirmed.Members, member(i))
		p.Pods = append(p.Pods, pod(name))
		p.PVCs = append(p.PVCs, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
		p.Cluster.Status.MemberStatuses = append(p.Cluster.Status.MemberStatuses, v1beta2.MemberStatus{Name: name, ID: fmt.Sprint(i + 1)})
	}
	for i := range n {
		p.Responses = append(p.Responses, Response{
			Name: fmt.Sprintf("m%d", i),
			Health: etcd.MemberHealth{
				ID: uint64(i + 1), ClusterID: 0xc1, Leader: 1, Version: "3.6.16", RaftTerm: 2, RaftIndex: 5000, RaftApplied: 5000,
				DBSize: 100 << 20, DBSizeInUse: 90 << 20, Quota: 2 * gib,
			},
			View: *p.Confirmed,
		})
	}
	return p
}

func member(i int) etcd.Member {
	return etcd.Member{
		ID: uint64(i + 1), Name: fmt.Sprintf("m%d", i),
		PeerURLs:   []string{fmt.Sprintf("http://m%d.c.ns.svc:2380", i)},
		ClientURLs: []string{fmt.Sprintf("http://m%d.c.ns.svc:2379", i)},
	}
}

func pod(name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: "node-" + name},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

// unresponsive makes a member not respond.
func (p *Probe) unresponsive(i int) {
	p.Responses[i] = Response{Name: p.Responses[i].Name, Err: errUnresponsive, ViewErr: errUnresponsive}
}

// stopped makes a member's container not run.
func (p *Probe) stopped(i int, restarts int32) {
	p.unresponsive(i)
	p.Pods[i].Status.ContainerStatuses[0] = corev1.ContainerStatus{
		Name: "etcd", RestartCount: restarts,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}
}

// loseAllBut takes away the pods and PVCs of the members that are not named.
func (p *Probe) loseAllBut(keep ...int) {
	var pods []corev1.Pod
	var pvcs []corev1.PersistentVolumeClaim
	var responses []Response
	for _, i := range keep {
		pods, pvcs, responses = append(pods, p.Pods[i]), append(pvcs, p.PVCs[i]), append(responses, p.Responses[i])
	}
	p.Pods, p.PVCs, p.Responses = pods, pvcs, responses
}

// confirmed makes the controller have reported the loss: either a member responds to it, or it knows
// that the loss is permanent.
func (p *Probe) confirmed(lost corev1.ConditionStatus, responds ...int) {
	p.Cluster.Status.Conditions = append(p.Cluster.Status.Conditions, v1beta2.ClusterCondition{
		Type: v1beta2.ClusterConditionQuorumLost, Status: lost, Message: "m1 may serve although the controller does not reach it.",
	})
	for _, i := range responds {
		p.Cluster.Status.MemberStatuses[i].RaftIndex = 5000
	}
	for i := range p.PVCs {
		for j := range p.Cluster.Status.MemberStatuses {
			if s := &p.Cluster.Status.MemberStatuses[j]; s.Name == p.PVCs[i].Name {
				s.Pod, s.Claim, s.Role = s.Name, s.Name, v1beta2.MemberRoleFollower
			}
		}
	}
	if lost == corev1.ConditionTrue && len(responds) == 0 {
		p.Cluster.Status.PermanentQuorumLossSince = ptr.To(metav1.NewTime(p.ProbedAt.Add(-time.Minute)))
	}
}

// backedUp gives the cluster a last backup.
func (p *Probe) backedUp(verified bool) {
	p.Cluster.Status.LastBackup = &v1beta2.LastBackup{Name: "nightly", Time: metav1.NewTime(p.ProbedAt.Add(-time.Hour)), Revision: 7, Verified: verified}
}

// beside adds two members that another program runs. The first one is healthy.
func (p *Probe) beside(second corev1.ConditionStatus) {
	for i, healthy := range []corev1.ConditionStatus{corev1.ConditionTrue, second} {
		old := etcd.Member{ID: uint64(90 + i), Name: fmt.Sprintf("old-%d", i), PeerURLs: []string{fmt.Sprintf("http://old-%d:2380", i)}, ClientURLs: []string{fmt.Sprintf("http://old-%d:2379", i)}}
		p.Confirmed.Members = append(p.Confirmed.Members, old)
		for j := range p.Responses {
			p.Responses[j].View.Members = append(p.Responses[j].View.Members, old)
		}
		p.Cluster.Status.MemberStatuses = append(p.Cluster.Status.MemberStatuses, v1beta2.MemberStatus{Name: old.Name, ID: hex(old.ID), Unmanaged: true, Healthy: healthy, Message: "no route to it"})
	}
}

// besideOld is beside for a cluster that takes over the etcd of the other members.
func (p *Probe) besideOld() {
	p.beside(corev1.ConditionTrue)
	p.Cluster.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://old-0:2379"}}}
}

// leaderless takes the quorum away.
func (p *Probe) leaderless() {
	p.Confirmed, p.ConfirmErr = nil, &etcd.Error{Op: "list members", Kind: etcd.ErrNoQuorum}
	for i := range p.Responses {
		p.Responses[i].Health.Leader = 0
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		size      int
		change    func(*Probe)
		verdict   v1beta2.ClusterVerdict
		tolerance *int32
		says      []string
		// steps that must be there, by a part of the command or the reason.
		steps []string
		// lacks is what no step says.
		lacks []string
	}{
		{name: "all is well", size: 3, change: func(*Probe) {}, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](1), says: []string{"all 3 voters serve"}},
		{name: "a single one is well", size: 1, change: func(*Probe) {}, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](0)},
		{
			name: "a learner is joining", size: 3, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](1), says: []string{"m3 is joining"},
			change: func(p *Probe) {
				learner := member(3)
				learner.Learner = true
				p.Confirmed.Members = append(p.Confirmed.Members, learner)
				for i := range p.Responses {
					p.Responses[i].View = *p.Confirmed
				}
				p.Responses = append(p.Responses, Response{
					Name: "m3", ViewErr: etcd.ErrLearner,
					Health: etcd.MemberHealth{ID: 4, ClusterID: 0xc1, Leader: 1, Learner: true, RaftTerm: 2, RaftIndex: 12},
				})
				p.Pods = append(p.Pods, pod("m3"))
			},
		},
		{
			name: "one does not respond", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](0),
			change: func(p *Probe) { p.unresponsive(2) },
			says:   []string{"m2 does not respond"}, steps: []string{"kubectl -n ns logs m2 -c etcd --tail=50", "c.db"},
		},
		{
			name: "one of five ends again and again", size: 5, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) { p.stopped(4, 7) }, steps: []string{"logs m4 -c etcd --previous", `echo '{"spec":{"members":["m4"]}}' | kubectl create --raw '/apis/etcd.database.coreos.com/v1beta2/namespaces/ns/etcdclusters/c/replace' -f -`},
		},
		{
			name: "one cannot be scheduled", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](0),
			change: func(p *Probe) { p.stopped(1, 0) }, steps: []string{"describe pod m1"},
		},
		{
			name: "one was never made", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) { p.Cluster.Spec.Replicas = ptr.To[int32](5) }, says: []string{"3 voters, and the desired size is 5"},
		},
		{
			name: "old members serve beside it", size: 3, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](2), says: []string{"all 5 voters serve; another program runs 2 of them"},
			change: func(p *Probe) { p.beside(corev1.ConditionTrue) },
		},
		{
			name: "the quorum is lost beside old members", size: 5, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) {
				p.besideOld()
				p.loseAllBut(0)
				p.leaderless()
				p.confirmed(corev1.ConditionTrue, 0)
				p.backedUp(true)
			},
			steps: []string{"proxy/snapshot?member=m0' > m0.db", "bring back its members, and those that another program runs", "restore a backup into a new EtcdCluster"},
			lacks: []string{"recover?dryRun=All", "restore?dryRun=All"},
		},
		{
			name: "an old member does not respond to the controller", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) { p.beside(corev1.ConditionUnknown) }, says: []string{"member old-1 is not healthy: another program runs it; the controller reports: no route to it"},
		},
		{
			name: "one has lost the leader", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](0),
			change: func(p *Probe) { p.Responses[1].Health.Leader = 0 }, says: []string{"m1 knows no leader"},
		},
		{
			name: "the disk of one hangs", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](0),
			change: func(p *Probe) { p.FailedReads = map[string]error{"m1": errUnresponsive} },
			says:   []string{"m1 responds and does not complete a linearizable read"}, steps: []string{"kubectl -n ns logs m1 -c etcd --tail=50", "disk may not take writes"},
		},
		{
			name: "the disk of the old leader hangs", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](0),
			change: func(p *Probe) {
				p.FailedReads = map[string]error{"m0": errUnresponsive}
				p.Responses[1].Health.Leader, p.Responses[2].Health.Leader = 2, 2
			},
			says: []string{"m0 responds and does not complete a linearizable read"},
		},
		{
			name: "no read is completed while there is no leader", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) {
				p.leaderless()
				p.FailedReads = map[string]error{"m0": errUnresponsive, "m1": errUnresponsive, "m2": errUnresponsive}
			},
			says: []string{"m0 knows no leader"},
		},
		{
			name: "one is far behind", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) { p.Responses[1].Health.RaftIndex = 10 }, says: []string{"m1 is 4990 entries behind"},
		},
		{
			name: "one is a little behind", size: 3, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](1),
			change: func(p *Probe) { p.Responses[1].Health.RaftIndex -= 20 },
		},
		{
			name: "full with waste", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				for i := range p.Responses {
					h := &p.Responses[i].Health
					h.DBSize, h.DBSizeInUse, h.Alarms = 2*gib, gib/2, []etcd.Alarm{{MemberID: 2, Type: etcd.AlarmNoSpace}}
				}
			},
			says:  []string{"etcd rejects writes: alarm NOSPACE raised by m1"},
			lacks: []string{"quotaBackendBytes"},
			steps: []string{"echo '{}' | kubectl create --raw '/apis/etcd.database.coreos.com/v1beta2/namespaces/ns/etcdclusters/c/defrag' -f -"},
		},
		{
			name: "full permanently", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				for i := range p.Responses {
					h := &p.Responses[i].Health
					h.DBSize, h.DBSizeInUse, h.Alarms = 2*gib, 2*gib, []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}}
				}
			},
			steps: []string{
				`-p '{"spec":{"etcd":{"quotaBackendBytes":"4Gi"}}}'`, "kubectl etcd ctl c -n ns --yes -- compaction --physical", "the controller disarms the alarm NOSPACE",
			},
		},
		{
			name: "full beside old members", size: 1, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				p.besideOld()
				h := &p.Responses[0].Health
				h.DBSize, h.DBSizeInUse, h.Alarms = 2*gib, 2*gib, []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}}
			},
			steps: []string{
				"delete keys, then drop the history up to now", "kubectl etcd ctl c -n ns --yes -- compaction --physical", "kubectl etcd ctl c -n ns --member m0 -- defrag",
				"the controller disarms the alarm NOSPACE",
			},
			lacks: []string{"quotaBackendBytes", "/defrag'"},
		},
		{
			name: "waste beside old members", size: 1, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				p.besideOld()
				p.Responses[0].Health.DBSize, p.Responses[0].Health.DBSizeInUse = gib, gib/4
			},
			steps: []string{"kubectl etcd ctl c -n ns --member m0 -- defrag"}, lacks: []string{"compaction", "/defrag'"},
		},
		{
			name: "an old member is full", size: 1, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				p.besideOld()
				p.Responses[0].Health.Alarms = []etcd.Alarm{{MemberID: 90, Type: etcd.AlarmNoSpace}}
			},
			steps: []string{"condition Available says what to do at a member that another program runs: kubectl -n ns get etcd c -o"}, lacks: []string{"kubectl etcd ctl", "/defrag'"},
		},
		{
			name: "full, and the quota was just raised", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				p.Cluster.Spec.Etcd = &v1beta2.EtcdOptions{QuotaBackendBytes: ptr.To(resource.MustParse("4Gi"))}
				for i := range p.Responses {
					h := &p.Responses[i].Health
					h.DBSize, h.DBSizeInUse, h.Alarms = 2*gib, 2*gib, []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}}
				}
			},
			steps: []string{"spec.etcd.quotaBackendBytes is 4Gi, and a member still runs with 2Gi: the controller restarts it"}, lacks: []string{"patch etcd"},
		},
		{
			name: "full at the largest quota", size: 1, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](0),
			change: func(p *Probe) {
				h := &p.Responses[0].Health
				h.DBSize, h.DBSizeInUse, h.Quota, h.Alarms = 8*gib, 8*gib, 8*gib, []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}}
			},
			steps: []string{"most of the database is in use: delete keys, then drop the history up to now"}, lacks: []string{"patch etcd"},
		},
		{
			name: "what is in use is not told", size: 3, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](1),
			change: func(p *Probe) { p.Responses[0].Health.DBSize, p.Responses[0].Health.DBSizeInUse = gib, 0 },
		},
		{
			name: "nearly full, and what is in use is not told", size: 3, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](1),
			change: func(p *Probe) { p.Responses[0].Health.DBSize, p.Responses[0].Health.DBSizeInUse = 2*gib, 0 },
			steps:  []string{`-p '{"spec":{"etcd":{"quotaBackendBytes":"4Gi"}}}'`},
		},
		{
			name: "corrupt", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				p.Responses[0].Health.Alarms = []etcd.Alarm{{MemberID: 3, Type: etcd.AlarmCorrupt}}
			},
			says: []string{"CORRUPT raised by m2"}, steps: []string{"differs from the others"},
		},
		{
			name: "paused while one is down", size: 3, verdict: v1beta2.VerdictDegraded, tolerance: ptr.To[int32](0),
			change: func(p *Probe) { p.unresponsive(2); p.Cluster.Spec.Paused = true }, steps: []string{`'{"spec":{"paused":false}}'`},
		},
		{
			name: "two of three are down and can come back", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) { p.leaderless(); p.stopped(1, 3); p.stopped(2, 3) },
			says:   []string{"0 of 3 voters serve, and a quorum needs 2", "m1 does not respond"},
			steps:  []string{"do not delete pods or PVCs", "logs m2"},
		},
		{
			name: "two of three are permanently lost", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) { p.leaderless(); p.loseAllBut(1); p.confirmed(corev1.ConditionTrue, 1) },
			says:   []string{"neither pod nor PVC"},
			steps:  []string{"proxy/snapshot?member=m1' > m1.db", "recover?dryRun=All"},
		},
		{
			name: "two of three are permanently lost, and the controller has not seen it yet", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) { p.leaderless(); p.loseAllBut(1) },
			steps:  []string{"The API accepts a recovery when the controller has confirmed the loss.: kubectl -n ns get nodes,pods,pvc"},
			lacks:  []string{"recover?dryRun=All"},
		},
		{
			name: "two of three are permanently lost, and the third responds to this API server only", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) { p.leaderless(); p.loseAllBut(1); p.confirmed(corev1.ConditionUnknown, 1) },
			steps:  []string{"proxy/snapshot?member=m1' > m1.db", "It reports: m1 may serve although the controller does not reach it.: kubectl -n ns get nodes,pods,pvc"},
			lacks:  []string{"recover?dryRun=All"},
		},
		{
			name: "all are permanently lost", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) { p.leaderless(); p.loseAllBut() },
			says:   []string{"no pod of a member runs"}, steps: []string{"no longer exist. A quorum needs 2. Restore a backup, if there is one. The status of the cluster names none; see the EtcdBackups.: kubectl -n ns get etcdbackups"},
		},
		{
			name: "all are permanently lost and there is a backup", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) { p.leaderless(); p.loseAllBut(); p.backedUp(true) },
			steps: []string{
				"no longer exist. A quorum needs 2. Restore the last backup, EtcdBackup nightly of 2026-05-01T02:00:00Z",
				"echo '{}' | kubectl create --raw '/apis/etcd.database.coreos.com/v1beta2/namespaces/ns/etcdclusters/c/restore?dryRun=All' -f -",
				"or restore another backup: see the EtcdBackups: kubectl -n ns get etcdbackups",
			},
		},
		{
			name: "all are permanently lost and the backup is encrypted", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) {
				p.leaderless()
				p.loseAllBut()
				p.backedUp(true)
				p.Cluster.Status.LastBackup.Encrypted = true
			},
			steps: []string{"replace IDENTITIES with the name of the Secret", `{"spec":{"decryption":{"ageIdentitiesSecret":"IDENTITIES"}}}`},
		},
		{
			name: "all are permanently lost and the backup was not read back", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) { p.leaderless(); p.loseAllBut(); p.backedUp(false) },
			steps:  []string{"no longer exist. A quorum needs 2. Restore a backup, if there is one. The status of the cluster names none; see the EtcdBackups.: kubectl -n ns get etcdbackups"},
		},
		{
			name: "one volume is left, and no member responds", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) {
				p.leaderless()
				p.stopped(1, 0)
				p.loseAllBut(1)
				p.backedUp(true)
				p.confirmed(corev1.ConditionTrue)
			},
			steps: []string{"a survivor that has restarted needs a quorum of voters", "recover?dryRun=All", "If no PVC can be read: Restore the last backup", "restore?dryRun=All"},
		},
		{
			name: "one volume is left, and its node is not ready", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) { p.leaderless(); p.stopped(1, 0); p.loseAllBut(1); p.confirmed(corev1.ConditionUnknown) },
			steps:  []string{"It reports: m1 may serve although the controller does not reach it."},
			lacks:  []string{"recover?dryRun=All"},
		},
		{
			name: "an election that takes its time", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-1),
			change: func(p *Probe) { p.Confirmed, p.ConfirmErr = nil, errors.New("no") },
			says:   []string{"no read went through a quorum in time"},
		},
		{
			name: "no member can be reached", size: 3, verdict: v1beta2.VerdictUnreachable,
			change: func(p *Probe) {
				p.Confirmed = nil
				for i := range p.Responses {
					p.unresponsive(i)
				}
			},
			says: []string{"none of 3 members responds to this API server"}, steps: []string{"get networkpolicies"},
		},
		{
			name: "no member responds and most do not run", size: 3, verdict: v1beta2.VerdictQuorumLost, tolerance: ptr.To[int32](-2),
			change: func(p *Probe) { p.Confirmed = nil; p.unresponsive(0); p.stopped(1, 1); p.stopped(2, 1) },
			says:   []string{"the pods of 1 of 3 voters run"},
		},
		{
			name: "neither members nor Kubernetes respond", size: 3, verdict: v1beta2.VerdictUnreachable,
			change: func(p *Probe) {
				p.Confirmed, p.Pods, p.PodsKnown = nil, nil, false
				for i := range p.Responses {
					p.unresponsive(i)
				}
			},
		},
		{
			name: "two leaders", size: 3, verdict: v1beta2.VerdictDisagreement, tolerance: ptr.To[int32](1),
			change: func(p *Probe) { p.Responses[2].Health.Leader, p.Responses[2].Health.RaftTerm = 3, 3 },
			says:   []string{"do not follow the same leader: m0 and m1: m0; m2: m2"}, steps: []string{"etcdclusters/c/members'"},
		},
		{
			name: "two lists", size: 3, verdict: v1beta2.VerdictDisagreement, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				p.Responses[2].View = etcd.Membership{ClusterID: 0xc1, Members: p.Confirmed.Members[:2]}
			},
			says: []string{"have different member lists"},
		},
		{
			name: "two clusters", size: 3, verdict: v1beta2.VerdictSplitBrain,
			change: func(p *Probe) { p.Responses[2].Health.ClusterID = 0xc2 },
			says:   []string{"different etcd clusters", "m0 and m1: cluster c1; m2: cluster c2"}, steps: []string{"m2.db"},
		},
		{
			name: "starting", size: 3, verdict: v1beta2.VerdictCreating,
			change: func(p *Probe) {
				p.Confirmed, p.Responses, p.Pods, p.PVCs, p.Cluster.Status = nil, nil, nil, nil, v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseCreating}
			},
			steps: []string{"describe etcd c"},
		},
		{
			name: "hibernated without PVCs", size: 0, verdict: v1beta2.VerdictHibernated,
			change: func(p *Probe) { p.Confirmed = nil }, steps: []string{"replace SIZE with the size from before", "scale etcd c --replicas=SIZE"},
		},
		{
			name: "five are hibernated", size: 5, verdict: v1beta2.VerdictHibernated, tolerance: ptr.To[int32](-3),
			change: func(p *Probe) {
				p.Cluster.Spec.Replicas, p.Confirmed, p.Pods, p.Responses = ptr.To[int32](0), nil, nil, nil
			},
			steps: []string{"scale etcd c --replicas=5"},
		},
		{
			name: "a drain waits", size: 3, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				p.Cluster.Status.Conditions = append(p.Cluster.Status.Conditions, v1beta2.ClusterCondition{
					Type: v1beta2.ClusterConditionOnCordonedNode, Status: corev1.ConditionTrue, Message: "node worker is cordoned. Uncordon it.",
				})
			},
			steps: []string{"node worker is cordoned. Uncordon it.: kubectl -n"},
		},
		{
			name: "certificates end", size: 3, verdict: v1beta2.VerdictHealthy, tolerance: ptr.To[int32](1),
			change: func(p *Probe) {
				p.ClientCertificateExpiry = p.ProbedAt.Add(time.Hour)
				p.Responses[1].Health.CertificateExpiry = p.ProbedAt.Add(48 * time.Hour)
				p.Responses[2].Health.CertificateExpiry = p.ProbedAt.Add(1000 * time.Hour)
			},
			steps: []string{"of the controller and the API server ends at 2026-05-01T04:00:00Z", "certificate of member m1 ends"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := healthy(test.size)
			test.change(p)
			h := Diagnose(p)
			if h.Verdict != test.verdict {
				t.Errorf("verdict %s (%s), want %s", h.Verdict, h.Message, test.verdict)
			}
			if got, want := show(h.Tolerance), show(test.tolerance); got != want {
				t.Errorf("tolerance %s, want %s", got, want)
			}
			for _, part := range test.says {
				if !strings.Contains(h.Message, part) {
					t.Errorf("the message %q does not say %q", h.Message, part)
				}
			}
			var steps strings.Builder
			for _, s := range h.NextSteps {
				fmt.Fprintf(&steps, "%s: %s\n", s.Why, s.Command)
			}
			for _, part := range test.steps {
				if !strings.Contains(steps.String(), part) {
					t.Errorf("no step says %q:\n%s", part, steps.String())
				}
			}
			for _, part := range test.lacks {
				if strings.Contains(steps.String(), part) {
					t.Errorf("a step says %q:\n%s", part, steps.String())
				}
			}
			if test.verdict == v1beta2.VerdictHealthy && len(test.steps) == 0 && len(h.NextSteps) > 0 {
				t.Errorf("nothing is wrong, and there are next steps:\n%s", steps.String())
			}
			if test.verdict != v1beta2.VerdictHealthy && len(h.NextSteps) == 0 && len(test.steps) > 0 {
				t.Error("something is wrong, and there is no next step")
			}
		})
	}
}

func show(n *int32) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

func TestHealthOfMembers(t *testing.T) {
	t.Parallel()
	p := healthy(3)
	p.unresponsive(2)
	p.Responses[1].Health.RaftIndex = 4000
	h := Diagnose(p)
	if h.Leader != "m0" || h.ClusterID != "c1" || h.Voters != 3 || h.Serving != 2 || !h.QuorumResponded || h.UID != "uid" {
		t.Errorf("unexpected %+v", h)
	}
	if len(h.Members) != 3 {
		t.Fatalf("%d members", len(h.Members))
	}
	m0, m1, m2 := &h.Members[0], &h.Members[1], &h.Members[2]
	if m0.Role != v1beta2.MemberRoleLeader || m1.Role != v1beta2.MemberRoleFollower || m2.Role != v1beta2.MemberRoleFollower {
		t.Errorf("roles %s %s %s", m0.Role, m1.Role, m2.Role)
	}
	if m1.RaftLag != 1000 || m0.RaftLag != 0 || m0.Quota != 2*gib || m0.DBSize != 100<<20 || m0.Term != 2 {
		t.Errorf("unexpected figures %+v %+v", m0, m1)
	}
	if m2.Responded || m2.Error == "" || m2.ID != "3" || m2.Pod == nil || m2.Pod.Node != "node-m2" || m2.Claim == nil {
		t.Errorf("unexpected unresponsive member %+v", m2)
	}
}

// A member that never started has no name in etcd's list.
func TestUnstartedMember(t *testing.T) {
	t.Parallel()
	p := healthy(3)
	added := member(3)
	added.Name, added.ClientURLs, added.PeerURLs, added.Learner = "", nil, []string{"http://c-new.c.ns.svc:2380"}, false
	p.Confirmed.Members = append(p.Confirmed.Members, added)
	for i := range p.Responses {
		p.Responses[i].View = *p.Confirmed
	}
	h := Diagnose(p)
	last := h.Members[0] // c-new comes before m0
	if last.Name != "c-new" || last.Role != v1beta2.MemberRolePending || last.Responded {
		t.Errorf("unexpected %+v", last)
	}
	if h.Verdict != v1beta2.VerdictDegraded {
		t.Errorf("verdict %s with a voter that never started", h.Verdict)
	}
}

func TestIsUnsettled(t *testing.T) {
	t.Parallel()
	p := healthy(3)
	if IsUnsettled(p) {
		t.Error("a probe in which all agree is unsettled")
	}
	p.unresponsive(1)
	if IsUnsettled(p) {
		t.Error("silence is no disagreement")
	}
	p.Responses[2].Health.Leader = 0
	if !IsUnsettled(p) {
		t.Error("one that knows no leader yet is not asked again")
	}
}
