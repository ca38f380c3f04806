// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// livingCluster has served, and its record is there.
func livingCluster(t *testing.T) (*deletedCluster, *run) {
	t.Helper()
	l := newDeletedCluster(t, func(c *v1beta2.EtcdCluster) { c.DeletionTimestamp = nil })
	r := &Reconciler{Config: Config{Objects: l, Recorder: l, Gate: stopped(), Clock: noon()}}
	return l, &run{Reconciler: r, seen: &seen{Observed: planner.Observed{Cluster: l.c}}}
}

func (l *deletedCluster) record() *corev1.ConfigMap {
	l.Helper()
	live, err := l.GetConfigMap(l.Context(), "n", "c-record")
	if err != nil {
		l.Fatal(err)
	}
	return live
}

// TestWriteRecord: a record that exists is never overwritten by one that was decided on
// without having seen it, and what belongs to nothing is used.
func TestWriteRecord(t *testing.T) {
	t.Parallel()
	known := resources.Record{ClusterID: "beef"}
	for _, test := range []struct {
		name  string
		live  func(*corev1.ConfigMap)
		seen  *resources.Record
		write resources.Record
		err   error
		want  resources.Record
	}{
		{"the cache does not show it", func(*corev1.ConfigMap) {}, nil, resources.Record{ClusterID: "unknown"}, reconcile.ErrStale, known},
		{"its labels were removed", func(cm *corev1.ConfigMap) { cm.Labels = nil }, nil, resources.Record{ClusterID: "unknown"}, reconcile.ErrStale, known},
		{"it was replaced by an empty object", func(cm *corev1.ConfigMap) { cm.Labels, cm.Annotations, cm.Data = nil, nil, nil }, nil, known, reconcile.ErrStale, resources.Record{}},
		{"a user has that name", func(cm *corev1.ConfigMap) {
			cm.Labels, cm.Annotations, cm.Data = nil, nil, map[string]string{"a": "b"}
		}, nil, known, reconcile.ErrNotOwned, resources.Record{}},
		{"something is missing from it", func(*corev1.ConfigMap) {}, &known, resources.Record{ClusterID: "beef", Recoveries: []string{"one"}}, nil, resources.Record{ClusterID: "beef", Recoveries: []string{"one"}}},
		{"it has changed since", func(*corev1.ConfigMap) {}, &resources.Record{ClusterID: "old"}, resources.Record{ClusterID: "old", Recoveries: []string{"one"}}, reconcile.ErrStale, known},
		{"the cluster has served", func(*corev1.ConfigMap) {}, nil, resources.Record{BootstrapMember: "c-x"}, reconcile.ErrStale, known},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, r := livingCluster(t)
			live := l.record()
			test.live(live)
			if _, err := l.UpdateConfigMap(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			if test.seen != nil {
				r.seen.record, r.seen.Record = live, planner.Record{State: planner.Current, Record: *test.seen}
			}
			if err := writeRecord(t.Context(), r, planner.WriteRecord{Record: test.write}); !errors.Is(err, test.err) {
				t.Errorf("the error is %v, want %v", err, test.err)
			}
			got := l.record()
			if !resources.ParseRecord(got).Equal(test.want) {
				t.Errorf("it says %v", got.Data)
			}
			if owned := errors.Is(test.err, reconcile.ErrNotOwned); resources.Owns(l.c, got) == owned || (got.Labels[resources.LabelCluster] == "c") == owned {
				t.Errorf("owned by %v, labels %v", got.Annotations, got.Labels)
			}
		})
	}
}

// TestRecordPutBack: a round is recorded once, not by a controller that has not seen the round before, and the pods
// that the same plan creates are of that round.
func TestRecordPutBack(t *testing.T) {
	t.Parallel()
	l, r := livingCluster(t)
	round := resources.PutBackRecord{Round: 1, Since: noon().Now().UTC()}
	if err := recordPutBack(t.Context(), r, planner.RecordPutBack{PutBack: round}); err != nil {
		t.Fatal(err)
	}
	if got := resources.ParseRecord(l.record()); got.PutBack != round || got.ClusterID != "beef" {
		t.Errorf("it says %v", l.record().Data)
	}
	pod := &corev1.Pod{}
	if r.seen.Record.PutBack.Mark(pod); pod.Annotations[resources.AnnotationPutBack] != round.String() {
		t.Errorf("a pod that is created now says %v", pod.Annotations)
	}
	r.seen.Record.PutBack = resources.PutBackRecord{}
	if err := recordPutBack(t.Context(), r, planner.RecordPutBack{PutBack: round}); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("a round that was not seen: %v", err)
	}
}

// creations counts the attempts to create a ConfigMap.
type creations struct {
	*deletedCluster
	attempts int
}

func (c *creations) CreateConfigMap(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	c.attempts++
	return c.deletedCluster.CreateConfigMap(ctx, cm)
}

// TestTakenNameOfTheRecord: while the name of the record is taken, nothing is written again and
// again. When the name is free the record is created.
func TestTakenNameOfTheRecord(t *testing.T) {
	t.Parallel()
	l, r := livingCluster(t)
	c := &creations{deletedCluster: l}
	r.Objects = c
	taken := l.record()
	taken.Labels, taken.Annotations, taken.Data = nil, nil, map[string]string{"a": "b"}
	if _, err := l.UpdateConfigMap(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	write := func() error {
		return writeRecord(t.Context(), r, planner.WriteRecord{Record: resources.Record{ClusterID: "beef"}})
	}
	if err := write(); !errors.Is(err, reconcile.ErrNotOwned) || c.attempts != 1 {
		t.Errorf("%v after %d attempts", err, c.attempts)
	}
	l.c.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionProgressing, Reason: string(planner.ReasonNameConflict)}}
	if err := write(); !errors.Is(err, reconcile.ErrNotOwned) || c.attempts != 1 {
		t.Errorf("after the status said so: %v after %d attempts", err, c.attempts)
	}
	if err := l.kube.CoreV1().ConfigMaps("n").Delete(t.Context(), "c-record", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil || resources.ParseRecord(l.record()).ClusterID != "beef" {
		t.Errorf("after the name became free: %v, %v", err, l.record().Data)
	}
}

// TestRecordIsDeleted: nothing goes on without a record.
func TestRecordIsDeleted(t *testing.T) {
	t.Parallel()
	l, r := livingCluster(t)
	if err := l.kube.CoreV1().ConfigMaps("n").Delete(t.Context(), "c-record", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	recovery := v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-s"}
	for name, do := range map[string]func() error{
		"bootstrap":     func() error { return createBootstrapPod(t.Context(), r, planner.CreateBootstrapPod{Name: "c-x"}) },
		"bootstrap PVC": func() error { return createBootstrapPVC(t.Context(), r, planner.CreatePVC{Name: "c-x"}) },
		"cluster ID":    func() error { return recordBootstrap(t.Context(), r, planner.RecordBootstrap{ClusterID: 1}) },
		"log":           func() error { return recordLog(t.Context(), r, planner.RecordLog{}) },
		"put back":      func() error { return recordPutBack(t.Context(), r, planner.RecordPutBack{}) },
		"corrupt":       func() error { return recordCorruptVoters(t.Context(), r, planner.RecordCorruptVoters{}) },
		"recovery":      func() error { return recordRecovery(t.Context(), r, planner.RecordRecovery{Recovery: recovery}) },
		"recovery member": func() error {
			return createRecoveryMember(t.Context(), r, planner.CreateRecoveryMember{Recovery: recovery})
		},
		"old members": func() error { return fenceOldMembers(t.Context(), r, planner.FenceOldMembers{Recovery: recovery}) },
	} {
		if err := do(); !errors.Is(err, reconcile.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPublishedMemberStays: a controller whose cache is from before the end of a recovery does not create
// its member again. Clients have written to that member since.
func TestPublishedMemberStays(t *testing.T) {
	t.Parallel()
	for phase, deletes := range map[v1beta2.RecoveryPhase]bool{
		v1beta2.RecoveryPhaseCutover: true, v1beta2.RecoveryPhaseCleaning: false, v1beta2.RecoveryPhaseSucceeded: false,
	} {
		l, r := livingCluster(t)
		recovery := &v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-a"}
		seen, err := l.UpdateConfigMap(t.Context(), resources.WithRecord(l.c, l.record(), resources.ParseRecord(l.record()).WithRecovery(recovery)))
		if err != nil {
			t.Fatal(err)
		}
		r.seen.record, r.seen.Record = seen, planner.Record{State: planner.Current, Record: resources.ParseRecord(seen)}
		recovery.Phase = phase
		if _, err := l.UpdateConfigMap(t.Context(), resources.WithRecord(l.c, l.record(), resources.ParseRecord(seen).WithRecovery(recovery))); err != nil {
			t.Fatal(err)
		}
		pod, err := l.GetPod(t.Context(), "n", "c-a")
		if err != nil {
			t.Fatal(err)
		}
		err = deletePod(t.Context(), r, planner.DeletePod{Name: "c-a", UID: string(pod.UID), Why: planner.DeleteUnpublished})
		if _, gone := l.GetPod(t.Context(), "n", "c-a"); deletes != (gone != nil) || deletes != (err == nil) || !deletes && !errors.Is(err, reconcile.ErrStale) {
			t.Errorf("%s: error %v, the pod: %v", phase, err, gone)
		}
	}
}

// TestBootstrapBesideARestore: while a restore fills a new cluster, no controller whose cache does
// not show that restore starts the bootstrap member or records it.
func TestBootstrapBesideARestore(t *testing.T) {
	t.Parallel()
	for phase, begun := range map[v1beta2.RecoveryPhase]bool{
		v1beta2.RecoveryPhaseFilling: true, v1beta2.RecoveryPhaseCutover: true, v1beta2.RecoveryPhaseAbandoned: false,
	} {
		l, r := livingCluster(t)
		recovery := &v1beta2.RecoveryStatus{ID: "r", Phase: phase, RecoveryMember: "c-s"}
		l.deletePVC("c-theirs")
		written := resources.Record{BootstrapMember: "c-a"}.WithRecovery(recovery)
		if _, err := l.UpdateConfigMap(t.Context(), resources.WithRecord(l.c, l.record(), written)); err != nil {
			t.Fatal(err)
		}
		if err := l.kube.CoreV1().Services("n").Delete(t.Context(), resources.ClientServiceName(l.c), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := requireBootstrapMember(t.Context(), r, "c-a"); errors.Is(err, reconcile.ErrStale) != begun || !begun && err != nil {
			t.Errorf("%s: start of the bootstrap member: %v", phase, err)
		}
		l.observeBootstrapPod(r)
		if err := recordBootstrap(t.Context(), r, planner.RecordBootstrap{ClusterID: 1}); errors.Is(err, reconcile.ErrStale) != begun || !begun && err != nil {
			t.Errorf("%s: bootstrap record: %v", phase, err)
		}
	}
}

// observeBootstrapPod has the observation show the pod of the bootstrap member as it is.
func (l *deletedCluster) observeBootstrapPod(r *run) {
	l.Helper()
	pod, err := l.GetPod(l.Context(), "n", "c-a")
	if err != nil {
		l.Fatal(err)
	}
	r.seen.BootstrapName, r.seen.Pods = "c-a", []planner.Pod{{Name: "c-a", UID: string(pod.UID), Owned: true}}
}

// TestBootstrapIsRecordedWithItsPod: the pod of a bootstrap member that has responded may be deleted, and
// another controller makes it again before the record says that the cluster has served. Its process may run
// on for a while.
func TestBootstrapIsRecordedWithItsPod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since    func(*deletedCluster, *run)
		recorded bool
	}{
		"its pod stays":              {func(*deletedCluster, *run) {}, true},
		"its pod is made again":      {func(_ *deletedCluster, r *run) { r.seen.Pods[0].UID = "before" }, false},
		"its pod no longer exists":   {func(l *deletedCluster, _ *run) { l.deletePod("c-a") }, false},
		"the cache does not show it": {func(_ *deletedCluster, r *run) { r.seen.Pods = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, r := livingCluster(t)
			if _, err := l.UpdateConfigMap(t.Context(), resources.WithRecord(l.c, l.record(), resources.Record{BootstrapMember: "c-a"})); err != nil {
				t.Fatal(err)
			}
			l.observeBootstrapPod(r)
			test.since(l, r)
			err := recordBootstrap(t.Context(), r, planner.RecordBootstrap{ClusterID: 1})
			if recorded := resources.ParseRecord(l.record()).ClusterID != ""; recorded != test.recorded || errors.Is(err, reconcile.ErrStale) == test.recorded {
				t.Errorf("it is recorded: %t, error %v", recorded, err)
			}
		})
	}
}

func (l *deletedCluster) deletePVC(name string) {
	l.Helper()
	if err := l.kube.CoreV1().PersistentVolumeClaims("n").Delete(l.Context(), name, metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
}

func (l *deletedCluster) deletePod(name string) {
	l.Helper()
	if err := l.kube.CoreV1().Pods("n").Delete(l.Context(), name, metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
}

// TestPVCOfTheBootstrapMember: a controller whose cache is from before the cluster has served creates
// no PVC for a bootstrap member that has lost its own since. That member would be started on the empty
// PVC again and again, and never be replaced.
func TestPVCOfTheBootstrapMember(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		record         resources.Record
		served, beside bool
		want           error
	}{
		{"the cluster has never served", resources.Record{BootstrapMember: "c-a"}, false, false, nil},
		{"a PVC of an earlier cluster exists", resources.Record{BootstrapMember: "c-a"}, false, true, reconcile.ErrStale},
		{"the record has a cluster ID", resources.Record{BootstrapMember: "c-a", ClusterID: "beef"}, false, false, reconcile.ErrStale},
		{"the record names another bootstrap member", resources.Record{BootstrapMember: "c-y"}, false, false, reconcile.ErrStale},
		{"the client Service exists", resources.Record{BootstrapMember: "c-a"}, true, false, reconcile.ErrStale},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, r := livingCluster(t)
			r.seen.Cluster.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
			if _, err := l.UpdateConfigMap(t.Context(), resources.WithRecord(l.c, l.record(), test.record)); err != nil {
				t.Fatal(err)
			}
			pvcs := l.kube.CoreV1().PersistentVolumeClaims("n")
			if err := pvcs.Delete(t.Context(), "c-a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if !test.beside {
				l.deletePVC("c-theirs")
			}
			if !test.served {
				if err := l.kube.CoreV1().Services("n").Delete(t.Context(), resources.ClientServiceName(l.c), metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := createBootstrapPVC(t.Context(), r, planner.CreatePVC{Name: "c-a"}); !errors.Is(err, test.want) {
				t.Errorf("the error is %v, want %v", err, test.want)
			}
			if _, err := pvcs.Get(t.Context(), "c-a", metav1.GetOptions{}); (err == nil) != (test.want == nil) {
				t.Errorf("the PVC: %v", err)
			}
		})
	}
}

// TestLostClusterIDDuringARecovery: the cluster ID that was lost with a record is recorded again
// while a restore is under way, which would not go on without it.
func TestLostClusterIDDuringARecovery(t *testing.T) {
	t.Parallel()
	l, r := livingCluster(t)
	written := resources.Record{ClusterID: "unknown"}.WithRecovery(&v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseFilling, RecoveryMember: "c-s"})
	if _, err := l.UpdateConfigMap(t.Context(), resources.WithRecord(l.c, l.record(), written)); err != nil {
		t.Fatal(err)
	}
	if err := recordBootstrap(t.Context(), r, planner.RecordBootstrap{ClusterID: 0xbeef}); err != nil {
		t.Fatal(err)
	}
	if got := resources.ParseRecord(l.record()); got.ClusterID != "beef" || got.Recovery == nil {
		t.Errorf("the record says %+v", got)
	}
}

// TestDecommissionedMemberStaysAway: a controller whose cache is from before a recovery neither
// starts an old member again nor puts it behind the Services. An abandoned recovery gives it back.
func TestDecommissionedMemberStaysAway(t *testing.T) {
	t.Parallel()
	for phase, away := range map[v1beta2.RecoveryPhase]bool{
		v1beta2.RecoveryPhaseCutover: true, v1beta2.RecoveryPhaseCleaning: true, v1beta2.RecoveryPhaseSucceeded: true, v1beta2.RecoveryPhaseAbandoned: false,
	} {
		l, r := livingCluster(t)
		written := resources.Record{ClusterID: "beef"}.WithRecovery(&v1beta2.RecoveryStatus{ID: "r", Phase: phase, ClusterID: "beef", RecoveryMember: "c-s"})
		if _, err := l.UpdateConfigMap(t.Context(), resources.WithRecord(l.c, l.record(), written)); err != nil {
			t.Fatal(err)
		}
		pvc, err := l.GetPVC(t.Context(), "n", "c-a")
		if err != nil {
			t.Fatal(err)
		}
		pod, err := l.GetPod(t.Context(), "n", "c-a")
		if err != nil {
			t.Fatal(err)
		}
		resources.IsFenced(&pvc.Labels, "c")
		resources.IsFenced(&pod.Labels, "c")
		if _, err := l.UpdatePVC(t.Context(), pvc); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"its pod is created again": requirePVC(t.Context(), r, "c-a"),
			"its PVC gets its labels":  restorePVCLabels(t.Context(), r, pvc),
			"its pod gets its labels":  restorePodLabels(t.Context(), r, pod),
		} {
			if errors.Is(err, reconcile.ErrStale) != away || !away && err != nil {
				t.Errorf("%s: %s: %v", phase, name, err)
			}
		}
		if err := l.kube.CoreV1().Pods("n").Delete(t.Context(), "c-a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		// A stale observation would have the controller look again each second.
		err = findMember(t.Context(), r, planner.FindMember{Name: "c-a"})
		if kept := phase == v1beta2.RecoveryPhaseSucceeded; errors.Is(err, errOldDataKept) != kept || !kept && (err == nil) != away {
			t.Errorf("%s: the lost member is looked for: %v", phase, err)
		}
	}
}

// TestClientServiceOfADeletedCluster: a controller whose cache shows a cluster that was deleted
// since creates no client Service for it: that would lead to the members of the next cluster.
func TestClientServiceOfADeletedCluster(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]func(*v1beta2.EtcdCluster){
		"it stays": func(*v1beta2.EtcdCluster) {}, "it was recreated": func(c *v1beta2.EtcdCluster) { c.UID = "other" },
		"it is being deleted": func(c *v1beta2.EtcdCluster) { c.DeletionTimestamp = ptr.To(metav1.Now()) },
	} {
		l, r := livingCluster(t)
		r.seen.Cluster = l.c.DeepCopy()
		service := resources.ClientServiceName(l.c)
		if err := l.kube.CoreV1().Services("n").Delete(t.Context(), service, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		since(l.c)
		if _, err := l.UpdateClusterStatus(t.Context(), l.c); err != nil {
			t.Fatal(err)
		}
		err := ensureClientService(t.Context(), r, planner.EnsureClientService{})
		_, missing := l.GetService(t.Context(), "n", service)
		if stays := name == "it stays"; stays && (err != nil || missing != nil) || !stays && (!errors.Is(err, reconcile.ErrStale) || missing == nil) {
			t.Errorf("%s: error %v, the Service: %v", name, err, missing)
		}
	}
}

// TestRecoveryThatMembersKnow: a recovery that a member or the peer Service knows and the record does
// not have does not begin again.
func TestRecoveryThatMembersKnow(t *testing.T) {
	t.Parallel()
	for name, know := range map[string]func(metav1.Object){
		"its ID": func(o metav1.Object) { resources.CopyRecoveries(o, []string{"before", "r"}) },
		"its member": func(o metav1.Object) {
			resources.CopyRecovery(o, &v1beta2.RecoveryStatus{ID: "r", RecoveryMember: "c-a"})
		},
		"another recovery": func(o metav1.Object) { resources.CopyRecoveries(o, []string{"before"}) },
		"another cluster": func(o metav1.Object) {
			resources.CopyRecoveries(o, []string{"r"})
			o.SetOwnerReferences(nil)
			o.SetAnnotations(map[string]string{resources.AnnotationClusterUID: "other"})
		},
	} {
		l, r := livingCluster(t)
		pod, err := l.GetPod(t.Context(), "n", "c-a")
		if err != nil {
			t.Fatal(err)
		}
		know(pod)
		if _, err := l.UpdatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		begun := name == "its ID" || name == "its member"
		if err := requireNotBegun(t.Context(), r, "r"); errors.Is(err, reconcile.ErrStale) != begun || !begun && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, r := livingCluster(t)
	peer, err := l.GetService(t.Context(), "n", "c")
	if err != nil {
		t.Fatal(err)
	}
	r.seen.Record.Recoveries = []string{"before", "r"}
	r.seen.peerService = peer
	if err := repairPeerService(t.Context(), r, planner.RepairPeerService{}); err != nil {
		t.Fatal(err)
	}
	if err := requireNotBegun(t.Context(), r, "r"); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("the peer Service: %v", err)
	}
}

// TestWitnesses: pods and PVCs of a recovery member change one after the other; it is as far
// as the one that is farther, and hidden until neither is.
func TestWitnesses(t *testing.T) {
	t.Parallel()
	l, _ := livingCluster(t)
	recovery := &v1beta2.RecoveryStatus{ID: "two", RecoveryMember: "c-s", Phase: v1beta2.RecoveryPhaseFilling}
	made := func(phase v1beta2.RecoveryPhase, published bool) metav1.Object {
		pvc := resources.RecoveryPVC(l.c, recovery)
		next := recovery.DeepCopy()
		next.Phase = phase
		resources.CopyRecovery(pvc, next)
		if published {
			resources.IsPublished(&pvc.Labels, "c")
		}
		return pvc
	}
	const filling, cutover = v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryPhaseCutover
	old := resources.PVC(l.c, "c-a")
	resources.CopyRecoveries(old, []string{"one"})
	for _, test := range []struct {
		objects []metav1.Object
		phase   v1beta2.RecoveryPhase
		hidden  bool
	}{
		{[]metav1.Object{made(filling, false), old}, filling, true},
		{[]metav1.Object{made(cutover, false), made(filling, false), old}, cutover, true},
		{[]metav1.Object{made(filling, false), made(cutover, false), old}, cutover, true},
		{[]metav1.Object{made(cutover, true), made(cutover, false), old}, cutover, true},
		{[]metav1.Object{old, made(cutover, true), made(cutover, true)}, cutover, false},
	} {
		w := witnesses(l.c, test.objects)
		if len(w.RecoveryMembers) != 1 || w.RecoveryMembers[0].Recovery.Phase != test.phase || w.RecoveryMembers[0].Hidden != test.hidden || !slices.Equal(w.Recoveries, []string{"one"}) {
			t.Errorf("%+v, want phase %s, hidden %t", w, test.phase, test.hidden)
		}
	}
	gone := made(filling, false)
	now := metav1.Now()
	gone.SetDeletionTimestamp(&now)
	other := made(filling, false)
	other.SetOwnerReferences(nil)
	other.SetAnnotations(map[string]string{resources.AnnotationClusterUID: "other"})
	if w := witnesses(l.c, []metav1.Object{gone, other}); len(w.RecoveryMembers) > 0 {
		t.Errorf("a recovery member that is deleted, or another cluster's: %+v", w)
	}
}

// TestRequestBesideAnOldRecord: a cache that still shows an earlier recovery under way costs no
// request of a recovery. One that the record confirms does.
func TestRequestBesideAnOldRecord(t *testing.T) {
	t.Parallel()
	for phase, kept := range map[v1beta2.RecoveryPhase]bool{v1beta2.RecoveryPhaseSucceeded: true, v1beta2.RecoveryPhaseCleaning: false} {
		l, r := livingCluster(t)
		seen := resources.Record{ClusterID: "beef"}.WithRecovery(&v1beta2.RecoveryStatus{ID: "one", Phase: v1beta2.RecoveryPhaseCleaning, ClusterID: "beef", RecoveryMember: "c-a"})
		live := seen.WithRecovery(&v1beta2.RecoveryStatus{ID: "one", Phase: phase, ClusterID: "beef", RecoveryMember: "c-a"})
		record, err := l.UpdateConfigMap(t.Context(), resources.WithRecord(l.c, l.record(), live))
		if err != nil {
			t.Fatal(err)
		}
		r.seen.record, r.seen.Record = record, planner.Record{State: planner.Current, Record: seen}
		l.c.Status.Recovery = &v1beta2.RecoveryStatus{ID: "two", Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhasePending}
		if _, err := l.UpdateClusterStatus(t.Context(), l.c); err != nil {
			t.Fatal(err)
		}
		if err := writeStatus(t.Context(), r, planner.Plan{}); err != nil {
			t.Fatal(err)
		}
		got, err := l.GetCluster(t.Context(), "n", "c")
		if err != nil {
			t.Fatal(err)
		}
		if (got.Status.Recovery.ID == "two") != kept {
			t.Errorf("the record says %s, and the status has recovery %s", phase, got.Status.Recovery.ID)
		}
	}
}
