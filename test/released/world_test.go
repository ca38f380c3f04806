// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package released

import (
	"context"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	controller "github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
)

// reconcile has the controller of today observe the world once. It returns what the planner decides,
// which is not carried out, and the status that follows.
func (w *world) reconcile(t *testing.T) (planner.Plan, *v1beta2.ClusterStatus) {
	t.Helper()
	key := types.NamespacedName{Namespace: w.cluster.Namespace, Name: w.cluster.Name}
	var plan planner.Plan
	var status v1beta2.ClusterStatus
	r, err := controller.NewReconciler(controller.Config{
		Cache: cache{w}, Objects: objects{w: w}, CertManager: noCertManager{}, Etcd: responses{w: w},
		Gate: open{}, Recorder: silence{}, Waker: noWaker{}, Background: idle{},
		Clock: clocktesting.NewFakePassiveClock(w.etcd.Now.Time),
		Decide: func(o planner.Observed) planner.Plan {
			plan = planner.Decide(o)
			status = planner.Status(o, plan)
			return planner.Plan{Rule: plan.Rule}
		},
		Suffix:      func() string { return "unused" },
		Responsible: func(*v1beta2.EtcdCluster) bool { return true },
		AgentImage:  "agent:of-today",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if plan.Rule == "" {
		t.Fatal("the planner was not asked")
	}
	return plan, &status
}

// find returns an object by its kind and name, or nil.
func (w *world) find(kind, name string) runtime.Object {
	for _, object := range w.objects {
		if kindOf(object) == kind && nameOf(object) == name {
			return object
		}
	}
	return nil
}

func kindOf(object runtime.Object) string {
	switch object.(type) {
	case *corev1.Pod:
		return "Pod"
	case *corev1.PersistentVolumeClaim:
		return "PersistentVolumeClaim"
	case *corev1.Service:
		return "Service"
	case *corev1.ConfigMap:
		return "ConfigMap"
	case *corev1.Secret:
		return "Secret"
	case *policyv1.PodDisruptionBudget:
		return "PodDisruptionBudget"
	default:
		return ""
	}
}

func nameOf(object runtime.Object) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetName()
}

func all[T metav1.Object](w *world, is func(T) bool) []T {
	var list []T
	for _, object := range w.objects {
		if of, ok := object.(T); ok && is(of) {
			list = append(list, of)
		}
	}
	return list
}

func (w *world) pods() []*corev1.Pod { return all(w, func(*corev1.Pod) bool { return true }) }

func get[T runtime.Object](w *world, kind, name string) (T, error) {
	object, ok := w.find(kind, name).(T)
	if !ok {
		return object, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
	}
	return object, nil
}

func ofCluster[T metav1.Object](name string) func(T) bool {
	return func(object T) bool { return object.GetLabels()[resources.LabelCluster] == name }
}

func ofHidden[T metav1.Object](name string) func(T) bool {
	return func(object T) bool { return resources.IsHidden(object.GetLabels(), name) }
}

// cache implements the Cache of the controller.
type cache struct{ *world }

func (c cache) Cluster(_, _ string) (*v1beta2.EtcdCluster, error) { return c.cluster, nil }
func (c cache) Restore(_, name string) (*v1beta2.EtcdRestore, error) {
	return get[*v1beta2.EtcdRestore](c.world, "EtcdRestore", name)
}

func (c cache) Service(_, name string) (*corev1.Service, error) {
	return get[*corev1.Service](c.world, "Service", name)
}

func (c cache) ConfigMap(_, name string) (*corev1.ConfigMap, error) {
	return get[*corev1.ConfigMap](c.world, "ConfigMap", name)
}

func (c cache) PodDisruptionBudget(_, name string) (*policyv1.PodDisruptionBudget, error) {
	return get[*policyv1.PodDisruptionBudget](c.world, "PodDisruptionBudget", name)
}

func (c cache) Pods(_, name string) ([]*corev1.Pod, error) {
	return all(c.world, ofCluster[*corev1.Pod](name)), nil
}

func (c cache) Pod(_, name string) (*corev1.Pod, error) {
	return get[*corev1.Pod](c.world, "Pod", name)
}

func (c cache) PVC(_, name string) (*corev1.PersistentVolumeClaim, error) {
	return get[*corev1.PersistentVolumeClaim](c.world, "PersistentVolumeClaim", name)
}

func (c cache) HiddenPods(_, name string) ([]*corev1.Pod, error) {
	return all(c.world, ofHidden[*corev1.Pod](name)), nil
}

func (c cache) HiddenPVCs(_, name string) ([]*corev1.PersistentVolumeClaim, error) {
	return all(c.world, ofHidden[*corev1.PersistentVolumeClaim](name)), nil
}

func (c cache) PVCs(_, name string) ([]*corev1.PersistentVolumeClaim, error) {
	return all(c.world, ofCluster[*corev1.PersistentVolumeClaim](name)), nil
}

// PodsInEndpoints returns the voters: at rest all of them are ready.
func (c cache) PodsInEndpoints(_, _ string) (map[types.UID]bool, error) {
	in := map[types.UID]bool{}
	for _, pod := range c.pods() {
		in[pod.UID] = pod.Labels[resources.LabelRole] == resources.RoleVoter
	}
	return in, nil
}

func (cache) IsCordoned(string) bool { return false }

// objects implements the Objects of the controller as far as an observation reads them live. A write
// of anything but a status is a nil method: nothing is carried out.
type objects struct {
	controller.Objects
	w *world
}

func (o objects) GetSecret(_ context.Context, _, name string) (*corev1.Secret, error) {
	return get[*corev1.Secret](o.w, "Secret", name)
}

func (objects) UpdateClusterStatus(_ context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return c, nil
}

// responses implements the Etcd of the controller: every member responds.
type responses struct {
	controller.Etcd
	w *world
}

func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		panic(err) // the file has no ID there
	}
	return n
}

func (r responses) Members(context.Context, etcd.Target) (etcd.Membership, error) {
	list := etcd.Membership{ClusterID: number(r.w.etcd.ClusterID)}
	for _, m := range r.w.etcd.Members {
		list.From, list.RaftTerm = number(m.Leader), uint64(m.RaftTerm)
		list.Members = append(list.Members, etcd.Member{ID: number(m.ID), Name: m.Name, PeerURLs: []string{m.PeerURL}, Learner: m.Learner})
	}
	return list, nil
}

func (r responses) OwnMembers(ctx context.Context, target etcd.Target, _ etcd.Endpoint) (etcd.Membership, error) {
	return r.Members(ctx, target)
}

func (r responses) Statuses(_ context.Context, target etcd.Target) map[string]etcd.StatusResult {
	results := map[string]etcd.StatusResult{}
	for _, e := range target.Endpoints {
		i := slices.IndexFunc(r.w.etcd.Members, func(m member) bool { return m.Name == e.Name })
		if i < 0 {
			results[e.Name] = etcd.StatusResult{Err: &etcd.Error{Op: "status", Member: e.Name, Kind: etcd.ErrUnavailable}}
			continue
		}
		m := &r.w.etcd.Members[i]
		results[e.Name] = etcd.StatusResult{Health: etcd.MemberHealth{
			ID: number(m.ID), ClusterID: number(r.w.etcd.ClusterID), Leader: number(m.Leader), Version: m.Version, DBSize: m.DBSize,
			RaftTerm: uint64(m.RaftTerm), RaftIndex: uint64(m.RaftIndex), RaftApplied: uint64(m.RaftApplied), Learner: m.Learner,
		}}
	}
	return results
}

func (responses) FailedReads(context.Context, etcd.Target) map[string]error { return nil }

func (r responses) Shown(_ context.Context, target etcd.Target) map[string]etcd.Shown {
	leaf := func(name string) (*corev1.Secret, error) {
		return get[*corev1.Secret](r.w, "Secret", r.w.cluster.Name+name)
	}
	results := map[string]etcd.Shown{}
	for _, e := range target.Endpoints {
		server, err := leaf("-server-tls")
		peer, peerErr := leaf("-peer-tls")
		if err != nil || peerErr != nil {
			results[e.Name] = etcd.Shown{Err: err}
			continue
		}
		results[e.Name] = etcd.Shown{Client: kubernetes.LeafOf(server), Peer: kubernetes.LeafOf(peer)}
	}
	return results
}

// noCertManager is a Kubernetes without cert-manager.
type noCertManager struct{ controller.CertManager }

func (noCertManager) Served() (bool, error) { return false, nil }

// open is a gate that nothing was written through.
type open struct{}

func (open) IsReady(types.NamespacedName) bool           { return true }
func (open) Note(types.NamespacedName, metav1.Object)    {}
func (open) Compare(types.NamespacedName, metav1.Object) {}
func (open) Forget(types.NamespacedName)                 {}

type silence struct{}

func (silence) Eventf(runtime.Object, string, string, string, ...any) {}

// noWaker waits for no member.
type noWaker struct{}

func (noWaker) Await(types.NamespacedName, etcd.Target, etcd.Endpoint)    {}
func (noWaker) AwaitEnd(types.NamespacedName, etcd.Target, etcd.Endpoint) {}

// idle runs no task.
type idle struct{}

func (idle) Start(types.NamespacedName, string, func(context.Context) error) {}
func (idle) Last(types.NamespacedName) (id string, done bool, err error)     { return "", false, nil }
func (idle) Lack(types.NamespacedName) share.Lack                            { return share.Nothing }
func (idle) Forget(types.NamespacedName)                                     {}
