// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/health"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	gib          = int64(1) << 30
	firstVersion = "3.6.16"
	nextVersion  = "3.6.18"
	// recoveryMember is filled by a restore.
	recoveryMember = "main-z1b7"
	// etcdID is etcd's ID of the cluster.
	etcdID = 0xd8f1
)

// scene is a cluster as the controller and the API server see it. What the screens show is
// computed from it by the code of both.
type scene struct {
	members []sceneMember
	// target is spec.version, and recovery a recovery under way.
	target   string
	recovery *v1beta2.RecoveryStatus
	events   []corev1.Event
	now      time.Time
}

// sceneMember is one member of etcd. One that does not serve either crashes, restarts with
// another version, has lost its pod and its PVC, or knows no leader.
type sceneMember struct {
	name, version                      string
	crashes, restarts, lost, hasLeader bool
}

// responds is true if the member responds to the controller and the API server.
func (m *sceneMember) responds() bool { return !m.crashes && !m.restarts && !m.lost }

// scenes are the states whose screens are kept.
func scenes() map[string]*scene {
	degraded, lost, upgrading, restoring := atRest(), atRest(), atRest(), atRest()
	degraded.members[2].crashes = true
	degraded.events = []corev1.Event{podEvent("main-q3m8", "BackOff", "Back-off restarting failed container etcd in pod main-q3m8")}
	lost.members[0].hasLeader = false
	lost.members[1].lost, lost.members[2].lost = true, true
	upgrading.target = nextVersion
	upgrading.members[1].version, upgrading.members[2].restarts = nextVersion, true
	restoring.recovery = &v1beta2.RecoveryStatus{
		ID: "r1", Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseFilling, RecoveryMember: recoveryMember, Version: firstVersion,
		Source: v1beta2.RecoverySource{Restore: "main-20260304", Backup: &v1beta2.BackupPlace{StorageType: v1beta2.BackupStorageTypeS3}}, OldMembers: []string{"main-a7k2", "main-f9x4", "main-q3m8"},
		OldClusterID: strconv.FormatUint(etcdID, 16), RequestedAt: metav1.NewTime(plugintest.Now.Add(-time.Minute)),
	}
	return map[string]*scene{"healthy": atRest(), "degraded": degraded, "quorum-lost": lost, "upgrading": upgrading, "restoring": restoring}
}

// atRest is a cluster of three members in which nothing happens.
func atRest() *scene {
	s := &scene{target: firstVersion, now: plugintest.Now}
	for _, name := range []string{"main-a7k2", "main-f9x4", "main-q3m8"} {
		s.members = append(s.members, sceneMember{name: name, version: firstVersion, hasLeader: true})
	}
	return s
}

func podEvent(pod, reason, message string) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: pod + "." + reason, Namespace: plugintest.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: pod, Namespace: plugintest.Namespace},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, Count: 12, LastTimestamp: metav1.NewTime(plugintest.Now.Add(-time.Minute)),
	}
}

// desired is the EtcdCluster as a user creates it.
func (s *scene) desired() *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "main", Namespace: plugintest.Namespace},
		Spec: v1beta2.ClusterSpec{
			Replicas: ptr.To[int32](3), Version: firstVersion, TLS: &v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}},
			Pod: &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}},
			}},
			Backup: &v1beta2.ClusterBackupPolicy{
				Schedule: "@daily", StorageType: v1beta2.BackupStorageTypeS3,
				BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "backups/main", AWSSecret: "aws"}},
			},
		},
	}
}

// reconcile sets the status that the controller writes: first for the cluster at rest, then
// twice for the scene, so that it holds what the controller learns from the status before.
func (s *scene) reconcile(c *v1beta2.EtcdCluster) {
	c.Status.LastBackup = &v1beta2.LastBackup{
		Name: "main-scheduled", Time: metav1.NewTime(s.now.Add(-9 * time.Hour)), Revision: 81233, Verified: true, VerifiedBy: v1beta2.VerificationChecksum,
	}
	c.Status.Phase = v1beta2.ClusterPhaseRunning
	rest := atRest()
	desired := c.Spec.Version
	for _, step := range []struct {
		of  *scene
		ago time.Duration
	}{{rest, 300 * time.Hour}, {s, 4 * time.Minute}, {s, 0}} {
		c.Spec.Version = step.of.target
		o := step.of.observed(c, s.now.Add(-step.ago))
		c.Status = planner.Status(o, planner.Decide(o))
	}
	c.Spec.Version = desired
}

// observed is what the controller sees.
func (s *scene) observed(c *v1beta2.EtcdCluster, now time.Time) planner.Observed {
	o := planner.Observed{
		Now: now, Cluster: c.DeepCopy(), NewName: "main-n3w0", BootstrapName: s.members[0].name, Template: "declared", Trust: "ca",
		Record: planner.Record{State: planner.Current, Record: resources.Record{
			BootstrapMember: s.members[0].name, ClusterID: strconv.FormatUint(etcdID, 16), Recovery: s.recovery.DeepCopy(),
			Log: resources.LogRecord{ClusterID: strconv.FormatUint(etcdID, 16), Minor: 6, Readable: true},
		}},
		PeerService: planner.Current, ClientService: planner.Current,
		PodDisruptionBudget: planner.PodDisruptionBudget{State: planner.Current, MinAvailable: diagnosis.Quorum(len(s.members))},
		CA:                  &certplanner.CA{CrossSigned: true, Since: now.Add(-200 * time.Hour)},
		Etcd:                planner.Etcd{ClusterID: etcdID, Linearizable: s.hasQuorum()},
	}
	if !o.Etcd.Linearizable {
		o.Etcd.Err = "list members: no quorum"
	}
	o.Cluster.Finalizers = []string{resources.Finalizer}
	for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUseCA, v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer, v1beta2.CertificateUseOperator} {
		o.Certificates = append(o.Certificates, certplanner.Certificate{
			Use: use, Secret: "main-" + string(use), State: certplanner.Usable, Issuer: "main CA", Serial: "1f",
			NotBefore: s.now.Add(-200 * time.Hour), NotAfter: s.now.Add(2000 * time.Hour), Renewal: s.now.Add(1000 * time.Hour),
			Issued: certplanner.Issued{Signed: true, BundleMatches: true, SANsMatch: true},
		})
	}
	for i := range s.members {
		s.observeMember(&o, i)
	}
	if s.recovery != nil {
		o.Cluster.Status.Recovery = s.recovery.DeepCopy()
		o.RecoveryMember = planner.RecoveryMember{Hidden: true, Pod: &planner.Pod{
			Name: recoveryMember, UID: "pod-" + recoveryMember, Node: "node-1", Owned: true, Running: true, Version: firstVersion, Template: "declared",
			Trust: "ca", Refreshed: true, Accepts: true, TrustsCA: true, Made: now.Add(-time.Minute),
		}}
	}
	return o
}

// hasQuorum is true if a member list can be read through a quorum.
func (s *scene) hasQuorum() bool {
	serving := 0
	for i := range s.members {
		if m := &s.members[i]; m.responds() && m.hasLeader {
			serving++
		}
	}
	return serving >= diagnosis.Quorum(len(s.members))
}

// observeMember adds a member, its pod and its PVC.
func (s *scene) observeMember(o *planner.Observed, i int) {
	is := &s.members[i]
	m := planner.Member{ID: memberID(i), Name: is.name, Started: true, CertificateVerified: true}
	switch {
	case is.lost:
		m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonNoPod, "it has no pod"
	case !is.responds():
		m.Health, m.Reason, m.Message = planner.Unhealthy, planner.ReasonUnresponsive, "it does not respond"
	default:
		m.Version, m.DBSize, m.Quota, m.RaftIndex, m.RaftApplied = is.version, gib, 2*gib, 90210, 90210
		m.Health, m.Leader = planner.Healthy, memberID(0)
		if !is.hasLeader {
			m.Health, m.Reason, m.Message, m.Leader = planner.Unhealthy, planner.ReasonNoLeader, "it knows no leader", 0
			m.View = &planner.View{Members: s.listed()}
		}
	}
	o.Etcd.Members = append(o.Etcd.Members, m)
	if is.lost {
		return
	}
	pod := planner.Pod{
		Name: is.name, UID: "pod-" + is.name, Node: node(i), Owned: true, Running: is.responds(), Ready: is.responds(), Role: planner.PodVoter, Version: is.version,
		Template: "declared", InEndpoints: is.responds(), Trust: "ca", Refreshed: true, Accepts: true, TrustsCA: true, Made: s.now.Add(-200 * time.Hour),
		Outdated: is.version != o.Cluster.Spec.Version,
	}
	if is.crashes {
		pod.RestartCount, pod.Waiting = 6, "CrashLoopBackOff"
	}
	if is.restarts {
		pod.Outdated, pod.Restarting, pod.Running, pod.Version = false, true, true, s.target
	}
	o.Pods = append(o.Pods, pod)
	o.PVCs = append(o.PVCs, planner.PVC{Name: is.name, UID: "pvc-" + is.name, Owned: true, Version: is.version})
}

func memberID(i int) uint64 { return 0x8e9e05c521646940 + uint64(i) }

func node(i int) string { return fmt.Sprintf("node-%d", i+1) }

// listed is the member list of every member.
func (s *scene) listed() []planner.Member {
	var list []planner.Member
	for i := range s.members {
		list = append(list, planner.Member{ID: memberID(i), Name: s.members[i].name, Started: true})
	}
	return list
}

// probe is what the API server sees.
func (s *scene) probe(c *v1beta2.EtcdCluster) *health.Probe {
	membership := etcd.Membership{ClusterID: etcdID}
	for i := range s.members {
		name := s.members[i].name
		membership.Members = append(membership.Members, etcd.Member{
			ID: memberID(i), Name: name, PeerURLs: []string{resources.PeerURL(c, name)}, ClientURLs: []string{resources.ClientURL(c, name)},
		})
	}
	p := &health.Probe{Cluster: c, ProbedAt: s.now, Took: 12 * time.Millisecond, PodsKnown: true, ClientCertificateExpiry: s.now.Add(61 * 24 * time.Hour)}
	if s.hasQuorum() {
		p.Confirmed = &membership
	} else {
		p.ConfirmErr = &etcd.Error{Op: "list members", Kind: etcd.ErrNoQuorum}
	}
	for i := range s.members {
		is := &s.members[i]
		if is.lost {
			continue
		}
		p.Pods, p.PVCs = append(p.Pods, s.pod(i)), append(p.PVCs, boundPVC(is.name))
		r := health.Response{Name: is.name, View: membership, Took: 3 * time.Millisecond, Health: etcd.MemberHealth{
			ID: memberID(i), ClusterID: etcdID, Leader: memberID(0), Version: is.version, DBSize: gib, DBSizeInUse: gib / 2, Quota: 2 * gib,
			RaftTerm: 7, RaftIndex: 90210, RaftApplied: 90210, CertificateExpiry: s.now.Add(61 * 24 * time.Hour),
		}}
		if !is.hasLeader {
			r.Health.Leader = 0
		}
		if !is.responds() {
			err := &etcd.Error{Op: "status", Kind: etcd.ErrUnavailable}
			r = health.Response{Name: is.name, Err: err, ViewErr: err}
		}
		p.Responses = append(p.Responses, r)
	}
	if s.recovery != nil {
		err := &etcd.Error{Op: "status", Kind: etcd.ErrUnavailable}
		p.Pods, p.PVCs = append(p.Pods, runningPod(recoveryMember, "node-1")), append(p.PVCs, boundPVC(recoveryMember))
		p.Pods[len(p.Pods)-1].Status.Conditions[0].Status = corev1.ConditionFalse
		p.Responses = append(p.Responses, health.Response{Name: recoveryMember, Err: err, ViewErr: err})
	}
	slices.SortFunc(p.Responses, func(a, b health.Response) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	return p
}

// pod is the pod of a member.
func (s *scene) pod(i int) corev1.Pod {
	is := &s.members[i]
	pod := runningPod(is.name, node(i))
	if is.responds() {
		return pod
	}
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	if is.crashes {
		pod.Status.ContainerStatuses[0].RestartCount = 6
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: "back-off 2m40s restarting failed container=etcd pod=" + is.name,
		}}
	}
	return pod
}

func runningPod(name, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: plugintest.Namespace, Labels: map[string]string{resources.LabelRole: resources.RoleVoter}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: resources.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

func boundPVC(name string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: plugintest.Namespace},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")},
		},
	}
}
