// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package released

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/simulation/faults"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// recommended is a version of etcd that every release supports.
const recommended = "3.6.16"

// recording is a cluster and what happens to it before it is at rest.
type recording struct {
	name  string
	plan  schedules.Schedule
	steps []func(*faults.World)
}

// cases are clusters whose pods and PVCs differ in what the controller reads of them.
func cases() []recording {
	resize := func(n int32) func(*faults.World) {
		return func(w *faults.World) { w.Change(func(s *v1beta2.ClusterSpec) { s.Replicas = ptr.To(n) }) }
	}
	three := func() schedules.Schedule { return schedules.OfSize(3).WithVersion(recommended) }
	return []recording{
		{name: "plain", plan: three()},
		{name: "volumes", plan: three().WithVolumes()},
		{name: "certificates", plan: three().WithVolumes().WithCertificates()},
		{name: "declared", plan: three().WithVolumes(), steps: []func(*faults.World){declareEverything}},
		{name: "without-learners", plan: schedules.OfSize(3).WithVersion(schedules.OldAfter)},
		{name: "upgraded", plan: schedules.OfSize(3).WithVolumes(), steps: []func(*faults.World){
			func(w *faults.World) { w.Change(func(s *v1beta2.ClusterSpec) { s.Version = recommended }) },
		}},
		{name: "restarted", plan: three(), steps: []func(*faults.World){func(w *faults.World) { w.AskForRestart(schedules.Event{A: 1}) }}},
		{name: "scaled", plan: schedules.OfSize(1).WithVersion(recommended).WithVolumes(), steps: []func(*faults.World){resize(5), resize(3)}},
		{name: "hibernated", plan: three().WithVolumes(), steps: []func(*faults.World){resize(0)}},
		{name: "woken", plan: three().WithVolumes(), steps: []func(*faults.World){resize(0), resize(3)}},
		{name: "recovered", plan: three().WithVolumes().Automatically(), steps: []func(*faults.World){func(w *faults.World) {
			w.Disturb()
			w.DestroyMajority(schedules.Event{})
		}}},
	}
}

// declareEverything sets the fields that change a pod.
func declareEverything(w *faults.World) {
	w.Change(func(s *v1beta2.ClusterSpec) {
		p := faults.PolicyOf(s)
		p.Labels, p.Annotations = map[string]string{"team": "storage"}, map[string]string{"example.com/note": "kept"}
		p.Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("1024Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		}
		p.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "etcd", Effect: corev1.TaintEffectNoSchedule}}
		p.EtcdEnv = []corev1.EnvVar{{Name: "GOGC", Value: "50"}}
		p.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](9000)}
		p.ContainerSecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(false)}
		p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: "rack", WhenUnsatisfiable: corev1.ScheduleAnyway}}
		p.PriorityClassName, p.ImagePullPolicy = "etcd", corev1.PullIfNotPresent
		p.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		p.TerminationGracePeriodSeconds = ptr.To[int64](60)
		s.Etcd = &v1beta2.EtcdOptions{
			QuotaBackendBytes: ptr.To(resource.MustParse("8Gi")), SnapshotCount: ptr.To[int64](25000),
			AutoCompaction:    &v1beta2.AutoCompaction{Mode: v1beta2.AutoCompactionPeriodic, Retention: "90m"},
			HeartbeatInterval: &v1beta2.Duration{Duration: 250 * time.Millisecond}, ElectionTimeout: &v1beta2.Duration{Duration: 2500 * time.Millisecond},
			ExtraArgs: []string{"--max-txn-ops=512"},
		}
	})
}

// record plays the recording and returns what there is at rest.
func (c recording) record(t *testing.T) *world {
	t.Helper()
	w := faults.New(&c.plan, timeline.NewStats(), true)
	w.StartManager(0)
	w.After(0, w.Beat)
	w.After(0, w.Client)
	w.CreateCluster()
	reach(t, w)
	for _, step := range c.steps {
		step(w)
		reach(t, w)
	}
	for !w.Checks.Rests() {
		reach(t, w)
	}
	if w.Violation != nil {
		t.Fatalf("%s: %v", c.name, w.Violation)
	}
	for _, line := range w.Log {
		if strings.Contains(line, "refused: ") {
			t.Fatalf("%s: the change of the EtcdCluster is invalid: %s", c.name, line)
		}
	}
	made := &world{etcd: etcdOf(w)}
	for k := range kubernetes.Kinds {
		for _, object := range w.Store.List(k) {
			if cluster, ok := object.(*v1beta2.EtcdCluster); ok {
				made.cluster = cluster.DeepCopy()
				continue
			}
			made.objects = append(made.objects, object.(runtime.Object).DeepCopyObject())
		}
	}
	return made
}

// reach lets time pass until the cluster is what is declared.
func reach(t *testing.T, w *faults.World) {
	t.Helper()
	w.Advance(5 * time.Second)
	for from := w.Elapsed; w.Violation == nil && w.Goal() != ""; w.Advance(time.Second) {
		if w.Elapsed-from > faults.SettleTime {
			t.Fatalf("not reached in %v: %s", faults.SettleTime, w.Goal())
		}
	}
	if w.Violation != nil {
		t.Fatal(w.Violation)
	}
}

// etcdOf returns what the members of the etcd that serves respond.
func etcdOf(w *faults.World) members {
	found := members{Now: metav1.NewTime(w.Now())}
	if len(w.Etcd.Processes) == 0 {
		return found
	}
	l := w.Etcd.Processes[0].Dir.Lineage
	found.ClusterID = hex(l.ClusterID)
	for i := range l.Members.Peers {
		peer := &l.Members.Peers[i]
		health := w.Etcd.Health(w.Etcd.Member(l, peer.Id))
		found.Members = append(found.Members, member{
			ID: hex(peer.Id), Name: peer.Name, PeerURL: peer.Url, Learner: peer.Learner, Version: health.Version,
			Leader: hex(health.Leader), DBSize: health.DBSize, RaftTerm: int64(health.RaftTerm), RaftIndex: int64(health.RaftIndex), RaftApplied: int64(health.RaftApplied),
		})
	}
	return found
}

func hex(id uint64) string { return strconv.FormatUint(id, 16) }
