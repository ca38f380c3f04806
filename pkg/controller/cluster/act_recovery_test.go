// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// hiddenRecoveryMember is a live API with the recovery member, and the record of how far that is.
type hiddenRecoveryMember struct {
	*oneMember
	kept *corev1.ConfigMap
	// onlyPVC are the preconditions of the deletion of the PVC.
	onlyPVC metav1.Preconditions
}

func (h *hiddenRecoveryMember) GetConfigMap(context.Context, string, string) (*corev1.ConfigMap, error) {
	if h.kept == nil { // the cluster has never recovered
		return resources.RecordConfigMap(h.cluster, resources.Record{BootstrapMember: "c-old", ClusterID: "old"}), nil
	}
	return h.kept.DeepCopy(), nil
}

// observed is what was seen of the cluster and its record.
func (h *hiddenRecoveryMember) observed() *seen {
	record := planner.Record{State: planner.Current, Record: resources.ParseRecord(h.kept)}
	return &seen{Observed: planner.Observed{Cluster: h.cluster.DeepCopy(), Record: record}, record: h.kept.DeepCopy()}
}

func (h *hiddenRecoveryMember) ListPods(context.Context, string, string) ([]corev1.Pod, error) {
	if h.pod == nil {
		return nil, nil
	}
	return []corev1.Pod{*h.pod.DeepCopy()}, nil
}

func (h *hiddenRecoveryMember) ListControlledPods(ctx context.Context, c *v1beta2.EtcdCluster) ([]corev1.Pod, error) {
	return h.ListPods(ctx, c.Namespace, c.Name)
}

func (h *hiddenRecoveryMember) DeletePVC(_ context.Context, _, _ string, only metav1.Preconditions) error {
	h.calls = append(h.calls, "delete PVC")
	h.onlyPVC = only
	return nil
}

// record writes how far the recovery is.
func (h *hiddenRecoveryMember) record(t *testing.T, phase v1beta2.RecoveryPhase, clusterID string) {
	t.Helper()
	h.kept = resources.RecordConfigMap(h.cluster, resources.Record{
		BootstrapMember: "c-old", ClusterID: clusterID, Recoveries: []string{"before", "r"}, Recovery: &v1beta2.RecoveryStatus{ID: "r", Phase: phase, RecoveryMember: "c-a"},
	})
}

// TestDeleteRecoveryMember: the recovery member goes only while it is nothing but a copy. Another
// process may have let the data go on in it since the cluster was observed.
func TestDeleteRecoveryMember(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		since func(*testing.T, *hiddenRecoveryMember)
		drops []string
		stale bool
	}{
		{"it is a copy", func(*testing.T, *hiddenRecoveryMember) {}, []string{"delete pod", "delete PVC"}, false},
		{"its pod is deleted", func(_ *testing.T, h *hiddenRecoveryMember) { h.pod = nil }, []string{"delete PVC"}, false},
		{"the old members are being decommissioned", func(t *testing.T, h *hiddenRecoveryMember) {
			t.Helper()
			h.record(t, v1beta2.RecoveryPhaseCutover, "old")
		}, nil, true},
		{"they are decommissioned", func(t *testing.T, h *hiddenRecoveryMember) {
			t.Helper()
			h.record(t, v1beta2.RecoveryPhaseCleaning, "new")
		}, nil, true},
		{"it was published", func(_ *testing.T, h *hiddenRecoveryMember) {
			resources.IsPublished(&h.pod.Labels, "c")
			resources.IsPublished(&h.pvc.Labels, "c")
		}, nil, false},
		{"it belongs to another cluster", func(_ *testing.T, h *hiddenRecoveryMember) {
			h.pod.OwnerReferences[0].UID, h.pvc.OwnerReferences[0].UID = "other", "other"
		}, nil, false},
		{"the service belongs to another cluster", func(_ *testing.T, h *hiddenRecoveryMember) { h.kept.OwnerReferences[0].UID = "other" }, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := &hiddenRecoveryMember{oneMember: stopped()}
			h.pvc = resources.RecoveryPVC(h.cluster, &v1beta2.RecoveryStatus{ID: "r", RecoveryMember: "c-a"})
			h.pvc.UID, h.pvc.ResourceVersion = "pvc-uid", "9"
			h.pod.Labels = h.pvc.Labels
			h.record(t, v1beta2.RecoveryPhaseFilling, "old")
			s := h.observed()
			test.since(t, h)
			err := deleteRecoveryMember(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: h, Etcd: h, Gate: h, Recorder: h}}, seen: s}, planner.DeleteRecoveryMember{Name: "c-a"})
			if test.stale != errors.Is(err, reconcile.ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the error is %v", err)
			}
			dropped := slices.DeleteFunc(h.calls, func(call string) bool { return call != "delete pod" && call != "delete PVC" })
			if !slices.Equal(dropped, test.drops) {
				t.Errorf("it did %q, want %q", dropped, test.drops)
			}
			// Publishing the member, or removing its labels, changes the pod: then the pod
			// stays.
			if slices.Contains(dropped, "delete pod") && (ptr.Deref(h.only.UID, "") != "pod-uid" || ptr.Deref(h.only.ResourceVersion, "") != "7") {
				t.Errorf("the pod goes only if %+v", h.only)
			}
			if slices.Contains(dropped, "delete PVC") && (ptr.Deref(h.onlyPVC.UID, "") != "pvc-uid" || ptr.Deref(h.onlyPVC.ResourceVersion, "") != "9") {
				t.Errorf("the PVC is deleted only if %+v", h.onlyPVC)
			}
		})
	}
}

// TestFilledSinceItWasObserved: in the cutover an empty recovery member may be all that the cluster has. It is deleted only as
// it was observed, because its pod may have been filled since.
func TestFilledSinceItWasObserved(t *testing.T) {
	t.Parallel()
	changed := func(h *hiddenRecoveryMember) { h.pod.ResourceVersion = "8" }
	for name, test := range map[string]struct {
		phase v1beta2.RecoveryPhase
		since func(*hiddenRecoveryMember)
		want  error
	}{
		"it is as it was observed":    {v1beta2.RecoveryPhaseCutover, func(*hiddenRecoveryMember) {}, nil},
		"its pod has changed":         {v1beta2.RecoveryPhaseCutover, changed, reconcile.ErrStale},
		"its pod is being deleted":    {v1beta2.RecoveryPhaseCutover, func(h *hiddenRecoveryMember) { changed(h); h.pod.DeletionTimestamp = &metav1.Time{} }, reconcile.ErrStale},
		"its pod no longer exists":    {v1beta2.RecoveryPhaseCutover, func(h *hiddenRecoveryMember) { h.pod = nil }, reconcile.ErrStale},
		"old members are still there": {v1beta2.RecoveryPhaseFilling, changed, nil},
	} {
		h := &hiddenRecoveryMember{oneMember: stopped()}
		h.pvc = resources.RecoveryPVC(h.cluster, &v1beta2.RecoveryStatus{ID: "r", RecoveryMember: "c-a"})
		h.pod.Labels = h.pvc.Labels
		h.record(t, test.phase, "old")
		s := h.observed()
		s.recoveryPod = h.pod.DeepCopy()
		test.since(h)
		err := deleteRecoveryMember(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: h, Etcd: h, Gate: h, Recorder: h}}, seen: s}, planner.DeleteRecoveryMember{Name: "c-a"})
		if deleted := slices.Contains(h.calls, "delete pod") || slices.Contains(h.calls, "delete PVC"); !errors.Is(err, test.want) || deleted != (test.want == nil) {
			t.Errorf("%s: error %v, did %q", name, err, h.calls)
		}
	}
}

// nursery is a live API in which the recovery member is made.
type nursery struct {
	*hiddenRecoveryMember
	made *corev1.Pod
}

func (n *nursery) CreatePVC(_ context.Context, c *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if n.pvc != nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("persistentvolumeclaims"), c.Name)
	}
	n.calls = append(n.calls, "create PVC")
	n.pvc = c
	return c, nil
}

func (n *nursery) UpdatePVC(_ context.Context, c *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	n.calls, n.pvc = append(n.calls, "update PVC"), c
	return c, nil
}

func (n *nursery) CreatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	n.made = pod
	return pod, nil
}

// TestRecoveryMemberIsFilled: a recovery member is filled as long as it has not served.
// After that it is filled only if its PVC was lost and the backup still exists. A recovery
// member without a record is not created, and neither is an empty one.
func TestRecoveryMemberIsFilled(t *testing.T) {
	t.Parallel()
	member := v1beta2.RecoverySource{Member: "c-old"}
	backup := v1beta2.RecoverySource{Backup: &v1beta2.BackupPlace{
		StorageType: v1beta2.BackupStorageTypeS3, RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/etcd"}},
	}}
	const filling, cutover = v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryPhaseCutover
	for _, test := range []struct {
		name     string
		phase    v1beta2.RecoveryPhase
		source   v1beta2.RecoverySource
		volume   bool
		recorded v1beta2.RecoveryPhase
		filled   bool
		stale    bool
	}{
		{"from a member", filling, member, false, filling, true, false},
		{"from a backup", filling, backup, false, filling, true, false},
		{"on the volume of the attempt before", filling, member, true, filling, true, false},
		{"it has served from its volume", cutover, member, true, cutover, false, false},
		{"it has served from a backup", cutover, backup, true, cutover, false, false},
		{"its volume went", cutover, backup, false, cutover, true, false},
		{"its volume went, and it held the only copy", cutover, member, false, cutover, false, true},
		{"another process has continued", filling, member, false, cutover, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := &nursery{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}}
			if !test.volume {
				n.pvc = nil
			}
			n.record(t, test.recorded, "old")
			r := &Reconciler{Config: Config{Objects: n, Etcd: n, Gate: n, Recorder: n, AgentImage: "agent:1"}}
			s := n.observed()
			recovery := &v1beta2.RecoveryStatus{ID: "r", Phase: test.phase, RecoveryMember: "c-a", Source: test.source}
			create := func() error {
				n.made = nil
				return createRecoveryMember(t.Context(), &run{Reconciler: r, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s}, planner.CreateRecoveryMember{Recovery: *recovery})
			}
			err := create()
			if test.stale {
				if !errors.Is(err, reconcile.ErrStale) || n.made != nil || slices.Contains(n.calls, "create PVC") {
					t.Errorf("it made %v and %q, error %v", n.made, n.calls, err)
				}
				return
			}
			if err != nil || n.made == nil {
				t.Fatalf("it made %v, error %v", n.made, err)
			}
			if filled := len(n.made.Spec.InitContainers) > 0; filled != test.filled || !resources.IsHidden(n.made.Labels, "c") {
				t.Errorf("filled %t, labels %v", filled, n.made.Labels)
			}
			// Kubernetes may have rejected that pod, after the PVC was created.
			if err := create(); err != nil || n.made == nil || len(n.made.Spec.InitContainers) > 0 != test.filled {
				t.Errorf("the next attempt made %v, error %v", n.made, err)
			}
			if began := resources.RecoveriesOn(n.made); !slices.Equal(began, []string{"before", "r"}) {
				t.Errorf("it knows recoveries %q", began)
			}
		})
	}
}

// reporting is a live API that knows which nodes do not report.
type reporting struct {
	Objects
	unresponsive []string
	asked        []string
}

func (r *reporting) NodeReports(_ context.Context, nodes []string) (map[string]string, error) {
	r.asked = nodes
	return unchangedReports(r.unresponsive), nil
}

// TestNodesReportBeforeTheCutover: the kubelets of all old members must report that may run and
// do not respond, each once.
func TestNodesReportBeforeTheCutover(t *testing.T) {
	t.Parallel()
	pod := func(name, node string) planner.Pod { return planner.Pod{Name: name, Node: node, Owned: true} }
	ended := pod("c-ended", "n9")
	ended.Finished = true
	theirs := pod("c-theirs", "n8")
	theirs.Owned = false
	s := &seen{Observed: planner.Observed{Pods: []planner.Pod{
		pod("c-a", "n1"), pod("c-b", "n2"), pod("c-c", "n2"), pod("c-pending", ""), ended, theirs, pod("c-survives", "n3"), pod("c-hangs", "n4"),
	}}}
	s.Etcd.Members = []planner.Member{
		{Name: "c-a", Reason: planner.ReasonUnresponsive}, {Name: "c-survives", Reason: planner.ReasonNoLeader}, {Name: "c-hangs", Reason: planner.ReasonNotServing},
	}
	for _, test := range []struct {
		unresponsive []string
		want         error
	}{{nil, nil}, {[]string{"n2"}, reconcile.ErrStale}} {
		api := &reporting{unresponsive: test.unresponsive}
		err := requireNodesReport(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: api, Clock: noon()}}, seen: s})
		if !errors.Is(err, test.want) {
			t.Errorf("unresponsive %v: error %v, want %v", test.unresponsive, err, test.want)
		}
		if !slices.Equal(api.asked, []string{"n1", "n2"}) {
			t.Errorf("asked for %v", api.asked)
		}
	}
}

// TestRecoveryMemberKeepsItsMinor: a recovery member that starts again on what it was filled with runs the minor
// version that has used it, and its PVC tells the version before that version runs.
func TestRecoveryMemberKeepsItsMinor(t *testing.T) {
	t.Parallel()
	backup := v1beta2.RecoverySource{Backup: &v1beta2.BackupPlace{
		StorageType: v1beta2.BackupStorageTypeS3, RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/etcd"}},
	}}
	for name, test := range map[string]struct{ ran, desired, want string }{
		"the next minor version waits for a rollout": {"3.5.26", "3.6.8", "3.5.26"},
		"the image has a tag with a suffix":          {"3.5.26-k3s1", "3.6.8", "3.5.26-k3s1"},
		"an older one cannot read the data":          {"3.6.8", "3.5.26", "3.6.8"},
		"another patch release may be the cure":      {"3.6.8", "3.6.11", "3.6.11"},
		"of an older release nothing is known":       {"", "3.6.8", "3.6.8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &nursery{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}}
			n.cluster.Spec.Version = test.desired
			n.cluster.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
			metav1.SetMetaDataAnnotation(&n.pvc.ObjectMeta, resources.AnnotationVersion, test.ran)
			n.record(t, v1beta2.RecoveryPhaseCutover, "old")
			r := &Reconciler{Config: Config{Objects: n, Etcd: n, Gate: n, Recorder: n, AgentImage: "agent:1"}}
			recovery := v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-a", Source: backup}
			err := createRecoveryMember(t.Context(), &run{Reconciler: r, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: n.observed()}, planner.CreateRecoveryMember{Recovery: recovery})
			if err != nil || n.made == nil {
				t.Fatalf("it made %v, error %v", n.made, err)
			}
			if ran, on := n.made.Annotations[resources.AnnotationVersion], n.pvc.Annotations[resources.AnnotationVersion]; ran != test.want || on != test.want {
				t.Errorf("the pod runs %s on a PVC of %s, want %s", ran, on, test.want)
			}
		})
	}
}
