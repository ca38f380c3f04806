// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// notebook is a live API that keeps what is recorded.
type notebook struct {
	*hiddenRecoveryMember
	written *corev1.ConfigMap
}

func (n *notebook) UpdateConfigMap(_ context.Context, s *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	n.written = s
	return s, nil
}

// ListPVCs finds nothing that knows of an earlier recovery.
func (n *notebook) ListPVCs(context.Context, string, string) ([]corev1.PersistentVolumeClaim, error) {
	return nil, nil
}

// GetService finds no peer Service that knows of one.
func (n *notebook) GetService(_ context.Context, _, name string) (*corev1.Service, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("services"), name)
}

// TestRecordLooksAgain: how far a recovery has come is recorded only if all that this was
// decided on is still so in the live API.
func TestRecordLooksAgain(t *testing.T) {
	t.Parallel()
	lost := planner.RecordRecovery{Lost: []string{"c-a"}}
	gone := planner.RecordRecovery{Gone: "c-a"}
	here := stopped()
	pod := func(h *hiddenRecoveryMember) { h.pod = here.pod }
	pvc := func(h *hiddenRecoveryMember) { h.pvc = here.pvc }
	rewritten := func(h *hiddenRecoveryMember) { h.cluster.ResourceVersion = "8" }
	cancelled := func(id string) func(*hiddenRecoveryMember) {
		return func(h *hiddenRecoveryMember) {
			h.cluster.Status.Recovery = &v1beta2.RecoveryStatus{ID: id, Cancelled: true}
		}
	}
	for _, test := range []struct {
		name   string
		action planner.RecordRecovery
		since  func(*hiddenRecoveryMember)
		stale  bool
	}{
		{"nothing has happened", planner.RecordRecovery{}, func(*hiddenRecoveryMember) {}, false},
		{"the lost voters have no objects", lost, func(*hiddenRecoveryMember) {}, false},
		{"a lost voter has a pod", lost, pod, true},
		{"a lost voter has a volume", lost, pvc, true},
		{"another status names the voters", lost, rewritten, true},
		{"a status that proves nothing was written", planner.RecordRecovery{}, rewritten, false},
		{"the recovery member has no objects", gone, func(*hiddenRecoveryMember) {}, false},
		{"the recovery member has a pod", gone, pod, true},
		{"the recovery member has a PVC", gone, pvc, true},
		{"it was cancelled", planner.RecordRecovery{}, cancelled("r"), true},
		{"another recovery was cancelled", planner.RecordRecovery{}, cancelled("before"), false},
		{"the cluster was recreated", planner.RecordRecovery{}, func(h *hiddenRecoveryMember) { h.cluster.UID = "other" }, true},
		{"the cluster goes away", planner.RecordRecovery{}, func(h *hiddenRecoveryMember) { h.cluster.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		{"another process has continued", planner.RecordRecovery{}, func(h *hiddenRecoveryMember) { h.record(t, v1beta2.RecoveryPhaseCutover, "old") }, true},
		{"it stands for another etcd", planner.RecordRecovery{}, func(h *hiddenRecoveryMember) { h.record(t, v1beta2.RecoveryPhaseFilling, "new") }, true},
		{"the ConfigMap is another cluster's", planner.RecordRecovery{}, func(h *hiddenRecoveryMember) { h.kept.OwnerReferences[0].UID = "other" }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := &hiddenRecoveryMember{oneMember: stopped()}
			h.pod, h.pvc, h.cluster.ResourceVersion = nil, nil, "7"
			h.record(t, v1beta2.RecoveryPhaseFilling, "old")
			s := h.observed()
			test.since(h)
			api := &notebook{hiddenRecoveryMember: h}
			action := test.action
			action.Recovery = v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-s"}
			err := recordRecovery(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: api, Etcd: h, Gate: h, Recorder: h}}, seen: s}, action)
			if test.stale != errors.Is(err, reconcile.ErrStale) || (err != nil && !test.stale) || test.stale != (api.written == nil) {
				t.Fatalf("wrote %v, error %v", api.written, err)
			}
			if api.written != nil && resources.ParseRecord(api.written).Recovery.Phase != v1beta2.RecoveryPhaseCutover {
				t.Errorf("recorded %q", api.written.Data)
			}
		})
	}
}

// TestRecordRemembersEveryRecovery: a repeated request for any recorded recovery is
// recognised, also if the record was written before it listed every recovery.
func TestRecordRemembersEveryRecovery(t *testing.T) {
	t.Parallel()
	h := &hiddenRecoveryMember{oneMember: stopped()}
	h.record(t, v1beta2.RecoveryPhaseSucceeded, "old")
	r := &Reconciler{Config: Config{Objects: &notebook{hiddenRecoveryMember: h}, Etcd: h, Gate: h, Recorder: h}}
	write := func(id string) []string {
		t.Helper()
		api := &notebook{hiddenRecoveryMember: h}
		r.Objects = api
		s := h.observed()
		a := planner.RecordRecovery{Recovery: v1beta2.RecoveryStatus{ID: id, Phase: v1beta2.RecoveryPhaseFilling}}
		if err := recordRecovery(t.Context(), &run{Reconciler: r, seen: s}, a); err != nil {
			t.Fatal(err)
		}
		h.kept = api.written
		return resources.ParseRecord(api.written).Recoveries
	}
	for _, step := range []struct {
		id   string
		want []string
	}{{"second", []string{"before", "r", "second"}}, {"second", []string{"before", "r", "second"}}, {"third", []string{"before", "r", "second", "third"}}} {
		if got := write(step.id); !slices.Equal(got, step.want) {
			t.Errorf("after %s: %q, want %q", step.id, got, step.want)
		}
	}
	for i := range resources.MostRecoveries {
		write(fmt.Sprint("more-", i))
	}
	if got := resources.ParseRecord(h.kept).Recoveries; len(got) != resources.MostRecoveries || got[0] != "more-0" {
		t.Errorf("%d are remembered, from %s on", len(got), got[0])
	}
}

// TestRecoveryEventsNameTheRequester: the events of a recovery name the user that asked for
// it, if a user did.
func TestRecoveryEventsNameTheRequester(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		phase v1beta2.RecoveryPhase
		by    string
		want  string
	}{
		{v1beta2.RecoveryPhaseFilling, "jane", "RecoveryStarted: Recovery from member c-a started in recovery member c-s, as requested by jane"},
		{v1beta2.RecoveryPhaseFilling, "", "RecoveryStarted: Recovery from member c-a started in recovery member c-s"},
		{v1beta2.RecoveryPhaseAbandoned, "jane", "RecoveryAbandoned: The recovery, as requested by jane, was abandoned: it was cancelled"},
		{v1beta2.RecoveryPhaseAbandoned, "", "RecoveryAbandoned: The recovery was abandoned: it was cancelled"},
	} {
		events := &deletedCluster{}
		r := &Reconciler{Config: Config{Recorder: events}}
		announceRecovery(&run{Reconciler: r, seen: &seen{Observed: planner.Observed{Cluster: &v1beta2.EtcdCluster{}}}}, &v1beta2.RecoveryStatus{
			Phase: test.phase, RecoveryMember: "c-s", Source: v1beta2.RecoverySource{Member: "c-a"}, RequestedBy: test.by, Message: "it was cancelled",
		})
		if len(events.events) != 1 || events.events[0] != test.want {
			t.Errorf("events %q, want %q", events.events, test.want)
		}
	}
}

// TestRecordOfTheNewCluster: when the last old member has ended, and not before, the
// record is of the new cluster and its bootstrap member.
func TestRecordOfTheNewCluster(t *testing.T) {
	t.Parallel()
	for phase, want := range map[v1beta2.RecoveryPhase][2]string{
		v1beta2.RecoveryPhaseCutover: {"old", "c-old"}, v1beta2.RecoveryPhaseCleaning: {"new", "c-s"},
	} {
		h := &hiddenRecoveryMember{oneMember: stopped()}
		h.pod = nil
		h.record(t, v1beta2.RecoveryPhaseFilling, "old")
		s := h.observed()
		api := &notebook{hiddenRecoveryMember: h}
		action := planner.RecordRecovery{Recovery: v1beta2.RecoveryStatus{ID: "r", Phase: phase, RecoveryMember: "c-s", ClusterID: "new"}}
		if err := recordRecovery(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: api, Etcd: h, Gate: h, Recorder: h}}, seen: s}, action); err != nil {
			t.Fatal(err)
		}
		if r := resources.ParseRecord(api.written); r.ClusterID != want[0] || r.BootstrapMember != want[1] {
			t.Errorf("%s: it stands for %s in %s", phase, r.ClusterID, r.BootstrapMember)
		}
	}
}

// TestRecordIsTheOneThatWasSeen: an action for a recovery happens only while the record on
// the ConfigMap is exactly the observed record.
func TestRecordIsTheOneThatWasSeen(t *testing.T) {
	t.Parallel()
	const filling = v1beta2.RecoveryPhaseFilling
	for name, test := range map[string]struct {
		seen  v1beta2.RecoveryStatus
		owner types.UID
		stale bool
	}{
		"that recovery":    {v1beta2.RecoveryStatus{ID: "r", Phase: filling, RecoveryMember: "c-a"}, "", false},
		"another recovery": {v1beta2.RecoveryStatus{ID: "q", Phase: filling, RecoveryMember: "c-a"}, "", true},
		"another phase":    {v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-a"}, "", true},
		"another member":   {v1beta2.RecoveryStatus{ID: "r", Phase: filling, RecoveryMember: "c-b"}, "", true},
		"not owned":        {v1beta2.RecoveryStatus{ID: "r", Phase: filling, RecoveryMember: "c-a"}, "other", true},
	} {
		h := &hiddenRecoveryMember{oneMember: stopped()}
		h.record(t, filling, "old")
		if test.owner != "" {
			h.kept.OwnerReferences[0].UID = test.owner
		}
		s := &seen{Observed: planner.Observed{Cluster: h.cluster}}
		_, err := requireSamePhase(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: h}}, seen: s}, &test.seen)
		if errors.Is(err, reconcile.ErrStale) != test.stale || err != nil && !test.stale {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// voterBack is a member that may respond again since it was observed.
type voterBack struct {
	*hiddenRecoveryMember
	health  etcd.StatusResult
	members error
}

func (v *voterBack) Statuses(context.Context, etcd.Target) map[string]etcd.StatusResult {
	return map[string]etcd.StatusResult{"c-old": v.health}
}

func (v *voterBack) Members(_ context.Context, target etcd.Target) (etcd.Membership, error) {
	if len(target.Endpoints) == 0 {
		return etcd.Membership{}, errors.New("no endpoint was given")
	}
	return etcd.Membership{}, v.members
}

// TestNoCutoverWithQuorum: an old quorum that has come back since the members were
// observed goes on untouched.
func TestNoCutoverWithQuorum(t *testing.T) {
	t.Parallel()
	leads := etcd.StatusResult{Health: etcd.MemberHealth{ID: 1, Leader: 1}}
	for _, test := range []struct {
		name    string
		health  etcd.StatusResult
		members error
		from    v1beta2.RecoveryPhase
		trigger v1beta2.RecoveryTrigger
		stale   bool
	}{
		{"it responds", leads, nil, v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryTriggerRequest, true},
		{"it responds to an automatic recovery", leads, nil, v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryTriggerAutomatic, true},
		{"a restore replaces serving members", leads, nil, v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryTriggerRestore, false},
		{"the way back has ended before", leads, nil, v1beta2.RecoveryPhaseCutover, v1beta2.RecoveryTriggerRequest, false},
		{"a member without a quorum responds", leads, errors.New("no leader"), v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryTriggerRequest, false},
		{"a member without a leader responds", etcd.StatusResult{Health: etcd.MemberHealth{ID: 1}}, nil, v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryTriggerRequest, false},
		{"a learner responds", etcd.StatusResult{Health: etcd.MemberHealth{ID: 1, Leader: 2, Learner: true}}, nil, v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryTriggerRequest, false},
		{"no member responds", etcd.StatusResult{Err: errors.New("gone")}, nil, v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryTriggerRequest, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := &hiddenRecoveryMember{oneMember: stopped()}
			h.pod = nil
			h.record(t, test.from, "old")
			api := &notebook{hiddenRecoveryMember: h}
			s := h.observed()
			s.target = etcd.Target{Endpoints: []etcd.Endpoint{{Name: "c-old"}}}
			action := planner.RecordRecovery{Recovery: v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-s", Trigger: test.trigger}}
			r := &Reconciler{Config: Config{Objects: api, Etcd: &voterBack{h, test.health, test.members}, Gate: h, Recorder: h}}
			err := recordRecovery(t.Context(), &run{Reconciler: r, seen: s}, action)
			if errors.Is(err, reconcile.ErrStale) != test.stale || (err == nil) == test.stale || (api.written == nil) != test.stale {
				t.Errorf("%v, written %v", err, api.written)
			}
		})
	}
}

// TestNoCutoverBesidePodsThatWereNotObserved: the pods of a quorum that serves may be missing
// from a cache that is behind, or not be ready there.
func TestNoCutoverBesidePodsThatWereNotObserved(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		edit  func(live *corev1.Pod, seen *planner.Pod)
		stale bool
	}{
		{"it was observed", func(*corev1.Pod, *planner.Pod) {}, false},
		{"it was not observed", func(_ *corev1.Pod, seen *planner.Pod) { seen.Name = "c-b" }, true},
		{"it was replaced", func(_ *corev1.Pod, seen *planner.Pod) { seen.UID = "before" }, true},
		{"it has become ready", func(live *corev1.Pod, _ *planner.Pod) { makeReady(live) }, true},
		{"it was ready", func(live *corev1.Pod, seen *planner.Pod) { makeReady(live); seen.Ready = true }, false},
		{"it has ended", func(live *corev1.Pod, seen *planner.Pod) { live.Status.Phase, seen.Name = corev1.PodFailed, "c-b" }, false},
		{"no member has used it", func(live *corev1.Pod, seen *planner.Pod) {
			seen.Name = "c-b"
			metav1.SetMetaDataAnnotation(&live.ObjectMeta, resources.AnnotationMembership, resources.MembershipAwaited)
		}, false},
		{"it is not owned", func(live *corev1.Pod, seen *planner.Pod) { live.OwnerReferences[0].UID, seen.Name = "other", "c-b" }, false},
		{"something has removed its owner", func(live *corev1.Pod, seen *planner.Pod) { live.OwnerReferences, seen.Name = nil, "c-b" }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := &hiddenRecoveryMember{oneMember: stopped()}
			h.record(t, v1beta2.RecoveryPhaseFilling, "old")
			observed := observedPod(h.cluster, h.pod)
			test.edit(h.pod, &observed)
			api := &notebook{hiddenRecoveryMember: h}
			s := h.observed()
			s.Pods = []planner.Pod{observed}
			action := planner.RecordRecovery{Recovery: v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-s"}}
			err := recordRecovery(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: api, Etcd: h, Gate: h, Recorder: h}}, seen: s}, action)
			if errors.Is(err, reconcile.ErrStale) != test.stale || (err == nil) == test.stale || (api.written == nil) != test.stale {
				t.Errorf("%v, written %v", err, api.written)
			}
		})
	}
}

// makeReady has a pod be ready with a container that runs.
func makeReady(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: resources.ContainerName, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		Image: pod.Spec.Containers[0].Image,
	}}
}
