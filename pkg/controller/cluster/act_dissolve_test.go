// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/kubeadapter"
	"github.com/etcd-operator/etcd-operator/pkg/controller/orphanedpvc"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	fakeetcd "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// deletedCluster is a cluster that is being deleted, with all that belongs to it.
type deletedCluster struct {
	kubeadapter.Client
	*testing.T
	kube   *fake.Clientset
	c      *v1beta2.EtcdCluster
	events []string
	only   map[string]metav1.Preconditions
}

func newDeletedCluster(t *testing.T, changes ...func(*v1beta2.EtcdCluster)) *deletedCluster {
	t.Helper()
	now := metav1.Now()
	c := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c", Namespace: "n", UID: "uid", ResourceVersion: "7", DeletionTimestamp: &now, Finalizers: []string{"other/one", resources.Finalizer},
		},
		Spec: v1beta2.ClusterSpec{
			Replicas: ptr.To[int32](1), Version: "3.6.16", TLS: &v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}},
			Pod: &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}},
		},
	}
	for _, change := range changes {
		change(c)
	}
	pvc := func(name string) *corev1.PersistentVolumeClaim {
		p := resources.PVC(c, name)
		resources.MarkAlone(c, p)
		p.UID, p.ResourceVersion = types.UID("uid-"+name), "3"
		return p
	}
	unlabelled, theirs := pvc("c-unlabelled"), pvc("c-theirs")
	unlabelled.Labels = nil
	theirs.Annotations[resources.AnnotationClusterUID] = "other"
	record, secret := resources.RecordConfigMap(c, resources.Record{ClusterID: "beef"}), resources.CertificateSecret(c, resources.CASecret(c), nil)
	resources.MarkAlone(c, record)
	resources.MarkAlone(c, secret)
	l := &deletedCluster{T: t, c: c, only: map[string]metav1.Preconditions{}}
	l.kube = fake.NewClientset(pvc("c-a"), unlabelled, theirs, resources.Released(c, pvc("c-released")), record, secret, resources.PeerService(c),
		resources.ClientService(c), resources.Pod(c, resources.MemberPod{Name: "c-a"}))
	l.Client = kubeadapter.Client{Kubernetes: l.kube, Etcd: fakeetcd.NewClientset(c)}
	return l
}

// DeletePVC remembers what the deletion depends on.
func (l *deletedCluster) DeletePVC(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	l.only[name] = only
	return l.Client.DeletePVC(ctx, namespace, name, only)
}

func (l *deletedCluster) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	l.events = append(l.events, reason+": "+fmt.Sprintf(format, args...))
}

func (l *deletedCluster) dissolve() {
	l.Helper()
	r := &Reconciler{Config: Config{Objects: l, Recorder: l, Clock: noon()}}
	if err := dissolve(l.Context(), &run{Reconciler: r, seen: &seen{Observed: planner.Observed{Cluster: l.c}}}, planner.FinishDeletion{}); err != nil {
		l.Fatal(err)
	}
}

// left returns the names of the PVCs, those with a note of why they stay first.
func (l *deletedCluster) left() (retentionReason, others []string) {
	l.Helper()
	list, err := l.kube.CoreV1().PersistentVolumeClaims("n").List(l.Context(), metav1.ListOptions{})
	if err != nil {
		l.Fatal(err)
	}
	for i := range list.Items {
		if why := list.Items[i].Annotations[resources.AnnotationRetained]; why != "" {
			retentionReason = append(retentionReason, list.Items[i].Name+" "+why)
		} else {
			others = append(others, list.Items[i].Name)
		}
	}
	return retentionReason, others
}

// isHandedOver is true if the record and the CA go with the cluster.
func (l *deletedCluster) isHandedOver() bool {
	l.Helper()
	record, err := l.GetConfigMap(l.Context(), "n", "c-record")
	if err != nil {
		l.Fatal(err)
	}
	secret, err := l.GetSecret(l.Context(), "n", resources.CASecret(l.c))
	if err != nil {
		l.Fatal(err)
	}
	if one, other := metav1.IsControlledBy(record, l.c), metav1.IsControlledBy(secret, l.c); one == other {
		return one
	}
	l.Error("record and CA do not go together")
	return false
}

// TestDissolve: exactly the PVCs of the deleted cluster are deleted, whatever labels they
// have, or stay with a note. The record and the CA are left to garbage collection. The
// finalizer of another program stays.
func TestDissolve(t *testing.T) {
	t.Parallel()
	retain := func(c *v1beta2.EtcdCluster) {
		c.Spec.Pod.PersistentVolumeClaimRetentionPolicy = &v1beta2.PersistentVolumeClaimRetentionPolicy{WhenDeleted: v1beta2.PVCRetain}
	}
	orphan := func(c *v1beta2.EtcdCluster) { c.Finalizers = append(c.Finalizers, metav1.FinalizerOrphanDependents) }
	bereft := func(l *deletedCluster) {
		pod := resources.Pod(l.c, resources.MemberPod{Name: "c-a"})
		pod.OwnerReferences = nil
		if _, err := l.UpdatePod(l.Context(), pod); err != nil {
			l.Fatal(err)
		}
	}
	bereftAsleep := func(l *deletedCluster) {
		service := resources.ClientService(l.c)
		service.OwnerReferences = nil
		if _, err := l.UpdateService(l.Context(), service); err != nil {
			l.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		change []func(*v1beta2.EtcdCluster)
		before func(*deletedCluster)
		why    string
		goes   bool
		event  string
	}{
		"deleted":  {nil, nil, "", true, EventVolumesDeleted + ": The EtcdCluster was deleted, and with it PVCs c-a, c-unlabelled"},
		"retained": {[]func(*v1beta2.EtcdCluster){retain}, nil, resources.RetainedByPolicy, true, EventVolumesRetained},
		"orphaned": {[]func(*v1beta2.EtcdCluster){orphan}, nil, resources.RetainedAsOrphan, false, "--cascade=orphan"},
		"orphaned, and garbage collection was faster":        {nil, bereft, resources.RetainedAsOrphan, false, "--cascade=orphan"},
		"orphaned asleep, and garbage collection was faster": {nil, bereftAsleep, resources.RetainedAsOrphan, false, "--cascade=orphan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newDeletedCluster(t, test.change...)
			if test.before != nil {
				test.before(l)
			}
			l.dissolve()
			retentionReason, others := l.left()
			want := []string{"c-a " + test.why, "c-released " + resources.RetainedOfRemoved, "c-unlabelled " + test.why}
			if test.why == "" {
				want = want[1:2]
			}
			if !slices.Equal(retentionReason, want) || !slices.Equal(others, []string{"c-theirs"}) {
				t.Errorf("retained are %q, and there are %q", retentionReason, others)
			}
			for name, only := range l.only {
				if only.UID == nil || *only.UID != types.UID("uid-"+name) || only.ResourceVersion == nil {
					t.Errorf("PVC %s is deleted whatever it is by now: %+v", name, only)
				}
			}
			if l.isHandedOver() != test.goes {
				t.Errorf("record and CA are handed over: %v", !test.goes)
			}
			live, err := l.GetCluster(t.Context(), "n", "c")
			if err != nil || slices.Contains(live.Finalizers, resources.Finalizer) || !slices.Contains(live.Finalizers, "other/one") {
				t.Errorf("the finalizers are %v, %v", live.Finalizers, err)
			}
			if len(l.events) != 1 || !strings.Contains(l.events[0], test.event) {
				t.Errorf("the events are %q", l.events)
			}
		})
	}
}

// TestDissolveOnlyWhatIsDeleted: a cache that is behind, or another cluster of the same
// name, costs nothing.
func TestDissolveOnlyWhatIsDeleted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1beta2.EtcdCluster){
		"alive":   func(c *v1beta2.EtcdCluster) { c.DeletionTimestamp = nil },
		"another": func(c *v1beta2.EtcdCluster) { c.UID = "next" },
	} {
		l := newDeletedCluster(t)
		live := l.c.DeepCopy()
		change(live)
		l.Etcd = fakeetcd.NewClientset(live)
		r := &Reconciler{Config: Config{Objects: l, Recorder: l, Clock: noon()}}
		if err := dissolve(t.Context(), &run{Reconciler: r, seen: &seen{Observed: planner.Observed{Cluster: l.c}}}, planner.FinishDeletion{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if kept, others := l.left(); len(kept)+len(others) != 4 || len(l.only) > 0 {
			t.Errorf("%s: there are %q and %q", name, kept, others)
		}
	}
}

// TestPVCWithoutClusterIsReportedOnce: PVCs of a cluster that does not exist are kept and
// reported once.
func TestPVCWithoutClusterIsReportedOnce(t *testing.T) {
	t.Parallel()
	l := newDeletedCluster(t)
	key := types.NamespacedName{Namespace: "n", Name: "c"}
	cache := &shown{deletedCluster: l}
	r := &orphanedpvc.Reporter{Cache: cache, Clusters: l, Recorder: l}
	r.Report(t.Context(), key, l.c)
	if len(l.events) != 1 || !strings.Contains(l.events[0], "UID other does not exist") {
		t.Errorf("beside a cluster of the same name: %q", l.events)
	}
	// The cache does not show the cluster yet, and the API does.
	if again := r.Report(t.Context(), key, nil); again == 0 || len(l.events) != 1 {
		t.Errorf("an outdated cache alarms: %q, looks again after %v", l.events, again)
	}
	l.Etcd = fakeetcd.NewClientset()
	for range 2 {
		if again := r.Report(t.Context(), key, nil); again != 0 {
			t.Errorf("looks again after %v", again)
		}
	}
	if len(l.events) != 3 || !strings.Contains(l.events[1], orphanedpvc.EventClusterMissing) {
		t.Errorf("the cluster no longer exists: %q", l.events)
	}
	if kept, others := l.left(); len(kept)+len(others) != 4 {
		t.Errorf("there are %q and %q", kept, others)
	}
}

// shown is a cache of the PVCs with the labels of the cluster.
type shown struct {
	Cache
	*deletedCluster
}

func (s *shown) PVCs(_, name string) ([]*corev1.PersistentVolumeClaim, error) {
	list, err := s.ListPVCs(s.Context(), "n", name)
	if err != nil {
		return nil, err
	}
	var pvcs []*corev1.PersistentVolumeClaim
	for i := range list {
		pvcs = append(pvcs, &list[i])
	}
	return pvcs, nil
}

// TestBudgetNotOwned: the controller reports a budget of the cluster's name that the
// cluster does not own. The budget holds nothing up.
func TestBudgetNotOwned(t *testing.T) {
	t.Parallel()
	l := newDeletedCluster(t)
	l.kube = fake.NewClientset(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}})
	l.Kubernetes = l.kube
	clock := noon()
	r := &Reconciler{Config: Config{Objects: l, Recorder: l, Clock: clock}}
	s := &seen{Observed: planner.Observed{Cluster: l.c, Now: clock.Now()}}
	ensure := planner.Plan{Actions: []planner.Action{planner.EnsurePodDisruptionBudget{MinAvailable: 2}}}
	result, err := act(t.Context(), &run{Reconciler: r, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s}, ensure)
	if err != nil || result.wait == nil || result.wait.Reason != "NameConflict" || result.retryAfter != 0 {
		t.Errorf("waits for %+v, fails with %v", result.wait, err)
	}
	ensure.Wait = &planner.Wait{Reason: "QuorumLost"}
	result, err = act(t.Context(), &run{Reconciler: r, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s}, ensure)
	if revised := result.revised(ensure); err != nil || revised.Wait.Reason != "QuorumLost" {
		t.Errorf("hides what matters more: %+v, %v", revised.Wait, err)
	}
}

// TestMarkObject marks exactly what was observed, and only while the cluster is declared as
// it was observed.
func TestMarkObject(t *testing.T) {
	t.Parallel()
	l := newDeletedCluster(t, func(c *v1beta2.EtcdCluster) { c.DeletionTimestamp = nil })
	desired := l.c.DeepCopy()
	desired.Spec.DeletionProtection, desired.Generation = ptr.To(true), 2
	l.Etcd = fakeetcd.NewClientset(desired)
	m := stopped()
	r := &Reconciler{Config: Config{Objects: l, Recorder: l, Gate: m, Clock: noon()}}
	key := types.NamespacedName{Namespace: "n", Name: "c"}
	action := planner.LabelObject{Object: planner.Object{Kind: planner.KindPVC, Name: "c-a", UID: "uid-c-a"}}
	if err := markObject(t.Context(), &run{Reconciler: r, key: key, seen: &seen{Observed: planner.Observed{Cluster: l.c}}}, action); err == nil {
		t.Error("marked as an outdated spec says")
	}
	s := &seen{Observed: planner.Observed{Cluster: desired}}
	for _, wrong := range []planner.Object{{Kind: planner.KindPVC, Name: "c-a", UID: "x"}, {Kind: planner.KindPVC, Name: "c-theirs", UID: "uid-c-theirs"}} {
		if err := markObject(t.Context(), &run{Reconciler: r, key: key, seen: s}, planner.LabelObject{Object: wrong}); err == nil {
			t.Errorf("marked %+v", wrong)
		}
	}
	for _, object := range []planner.Object{
		action.Object, {Kind: planner.KindSecret, Name: "c-ca-tls"}, {Kind: planner.KindRecord, Name: "c-record"}, {Kind: planner.KindService, Name: "c"}, {Kind: planner.KindPod, Name: "c-a"},
	} {
		if err := markObject(t.Context(), &run{Reconciler: r, key: key, seen: s}, planner.LabelObject{Object: object}); err != nil {
			t.Errorf("%+v: %v", object, err)
		}
	}
	pvc, _ := l.GetPVC(t.Context(), "n", "c-a")
	secret, _ := l.GetSecret(t.Context(), "n", "c-ca-tls")
	record, _ := l.GetConfigMap(t.Context(), "n", "c-record")
	service, _ := l.GetService(t.Context(), "n", "c")
	pod, _ := l.GetPod(t.Context(), "n", "c-a")
	for _, object := range []metav1.Object{pvc, secret, record, service, pod} {
		if !resources.IsMarked(desired, object) {
			t.Errorf("%T has the labels %v", object, object.GetLabels())
		}
	}
}

// TestHiddenClientService: a client Service without labels, which no cache shows, proves that
// the cluster has served. It gets its labels back; otherwise the cluster would wait for ever.
func TestHiddenClientService(t *testing.T) {
	t.Parallel()
	l := newDeletedCluster(t, func(c *v1beta2.EtcdCluster) { c.DeletionTimestamp = nil })
	service := resources.ClientService(l.c)
	service.Labels = nil
	if _, err := l.UpdateService(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Config: Config{Objects: l, Recorder: l, Gate: stopped(), Clock: noon()}}
	if err := requireNeverServed(t.Context(), &run{Reconciler: r, seen: &seen{Observed: planner.Observed{Cluster: l.c}}}, "c-a"); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("the member may bootstrap again: %v", err)
	}
	if live, err := l.GetService(t.Context(), "n", "c-client"); err != nil || live.Labels[resources.LabelCluster] != "c" {
		t.Errorf("the labels are %v, %v", live.Labels, err)
	}
}

// TestDissolveLiftsProtection: a cluster that is deleted a moment after its protection was
// lifted leaves nothing behind that the admission policy protects.
func TestDissolveLiftsProtection(t *testing.T) {
	t.Parallel()
	l := newDeletedCluster(t, func(c *v1beta2.EtcdCluster) { c.Spec.DeletionProtection = ptr.To(true) })
	l.c.Spec.Clients = []v1beta2.ClusterClient{{Name: "app"}}
	l.c.Status.Clients = []v1beta2.ClientStatus{{SecretName: "removed"}, {SecretName: "theirs"}}
	for _, client := range []v1beta2.ClusterClient{{Name: "app"}, {Name: "x", SecretName: "removed"}, {Name: "y", SecretName: "theirs"}} {
		binding := resources.Binding(l.c, &client, nil, nil)
		if client.SecretName == "theirs" {
			binding.Type = corev1.SecretTypeOpaque
		}
		if _, err := l.CreateSecret(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	l.c.Spec.DeletionProtection = ptr.To(false)
	l.Etcd = fakeetcd.NewClientset(l.c)
	l.dissolve()
	pod, _ := l.GetPod(t.Context(), "n", "c-a")
	service, _ := l.GetService(t.Context(), "n", "c")
	client, _ := l.GetService(t.Context(), "n", "c-client")
	secret, _ := l.GetSecret(t.Context(), "n", "c-ca-tls")
	app, _ := l.GetSecret(t.Context(), "n", "c-app-binding")
	removed, _ := l.GetSecret(t.Context(), "n", "removed")
	if theirs, _ := l.GetSecret(t.Context(), "n", "theirs"); theirs.Labels[resources.LabelProtected] == "" {
		t.Error("a Secret that is no client's was changed")
	}
	record, _ := l.GetConfigMap(t.Context(), "n", "c-record")
	for _, object := range []metav1.Object{pod, service, client, secret, app, removed, record} {
		if _, labelled := object.GetLabels()[resources.LabelProtected]; labelled {
			t.Errorf("%T %s is protected still", object, object.GetName())
		}
	}
}
