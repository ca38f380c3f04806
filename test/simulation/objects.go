// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// kind is a kind of Kubernetes object.
type kind int

const (
	kindCluster kind = iota
	kindService
	kindPod
	kindClaim
	kindBudget
	kindSecret
	kinds
)

var kindNames = [kinds]string{"etcdclusters", "services", "pods", "persistentvolumeclaims", "poddisruptionbudgets", "secrets"}

func (k kind) resource() schema.GroupResource { return schema.GroupResource{Resource: kindNames[k]} }

func kindOf(object metav1.Object) kind {
	switch object.(type) {
	case *v1beta2.EtcdCluster:
		return kindCluster
	case *corev1.Service:
		return kindService
	case *corev1.Pod:
		return kindPod
	case *corev1.PersistentVolumeClaim:
		return kindClaim
	case *policyv1.PodDisruptionBudget:
		return kindBudget
	case *corev1.Secret:
		return kindSecret
	default:
		return kinds
	}
}

func copyOf[T metav1.Object](object T) T {
	return any(object).(runtime.Object).DeepCopyObject().(T)
}

// table holds the objects of one kind by name; names are in order.
type table struct {
	names  []string
	byName map[string]metav1.Object
}

func (t *table) get(name string) metav1.Object { return t.byName[name] }

func (t *table) put(object metav1.Object) {
	name := object.GetName()
	if t.byName == nil {
		t.byName = map[string]metav1.Object{}
	}
	if _, found := t.byName[name]; !found {
		i, _ := slices.BinarySearch(t.names, name)
		t.names = slices.Insert(t.names, i, name)
	}
	t.byName[name] = object
}

func (t *table) drop(name string) {
	if i, found := slices.BinarySearch(t.names, name); found {
		t.names = slices.Delete(t.names, i, i+1)
		delete(t.byName, name)
	}
}

// change is one entry of the log that watches follow.
type change struct {
	version string
	object  metav1.Object
	deleted bool
}

// store is the Kubernetes API with the truth. An object in it is never changed, but
// replaced.
type store struct {
	w      *World
	tables [kinds]table
	log    [kinds][]change
	// versions holds the newest resource version of each kind: the kinds are those of
	// two APIs, and of one the versions may go back.
	versions [kinds]int64
	uids     int
}

// firstVersion is the resource version of an empty store.
const firstVersion = 100

func newStore(w *World) *store {
	s := &store{w: w}
	for k := range s.versions {
		s.versions[k] = firstVersion
	}
	return s
}

func (s *store) nextVersion(k kind) string {
	s.versions[k]++
	return strconv.FormatInt(s.versions[k], 10)
}

func (s *store) list(k kind) []metav1.Object {
	t := &s.tables[k]
	list := make([]metav1.Object, 0, len(t.names))
	for _, name := range t.names {
		list = append(list, t.byName[name])
	}
	return list
}

func (s *store) record(k kind, object metav1.Object, deleted bool) {
	s.log[k] = append(s.log[k], change{version: strconv.FormatInt(s.versions[k], 10), object: object, deleted: deleted})
	s.w.changed(k, object, deleted)
}

// lookup returns an object of the truth.
func lookup[T metav1.Object](s *store, k kind, name string) (T, bool) {
	object, found := s.tables[k].get(name).(T)
	return object, found
}

func get[T metav1.Object](s *store, k kind, name string) (T, error) {
	object, found := lookup[T](s, k, name)
	if !found {
		return object, apierrors.NewNotFound(k.resource(), name)
	}
	return object, nil
}

func create[T metav1.Object](s *store, object T) (T, error) {
	k := kindOf(object)
	var none T
	if _, taken := lookup[T](s, k, object.GetName()); taken {
		return none, apierrors.NewAlreadyExists(k.resource(), object.GetName())
	}
	object = copyOf(object)
	s.uids++
	object.SetUID(types.UID(kindNames[k] + "-" + strconv.Itoa(s.uids)))
	object.SetCreationTimestamp(metav1.NewTime(s.w.Now()))
	object.SetGeneration(1)
	if service, ok := any(object).(*corev1.Service); ok {
		if err := s.admitService(service, nil); err != nil {
			return none, err
		}
	}
	if claim, ok := any(object).(claimObject); ok {
		bound(claim)
	}
	s.replace(k, object)
	if ref := metav1.GetControllerOf(object); ref != nil && !s.exists(ref.UID) {
		s.w.collectGarbage(ref.UID)
	}
	return object, nil
}

// exists is true if a cluster with this UID is there; nothing else owns objects here.
func (s *store) exists(uid types.UID) bool {
	cluster, found := lookup[*v1beta2.EtcdCluster](s, kindCluster, clusterName)
	return found && cluster.UID == uid
}

// replace puts an object into the store under a new resource version.
func (s *store) replace(k kind, object metav1.Object) {
	object.SetResourceVersion(s.nextVersion(k))
	s.tables[k].put(object)
	s.record(k, object, false)
}

// update replaces an object if its resource version is that of the truth, or empty.
func update[T metav1.Object](s *store, object T) (T, error) {
	k := kindOf(object)
	var none T
	old, found := lookup[T](s, k, object.GetName())
	if !found || (object.GetUID() != "" && object.GetUID() != old.GetUID()) {
		return none, apierrors.NewNotFound(k.resource(), object.GetName())
	}
	if v := object.GetResourceVersion(); v != "" && v != old.GetResourceVersion() {
		return none, apierrors.NewConflict(k.resource(), object.GetName(), errModified)
	}
	object = copyOf(object)
	object.SetResourceVersion(old.GetResourceVersion())
	if service, ok := any(object).(*corev1.Service); ok {
		if err := s.admitService(service, any(old).(*corev1.Service)); err != nil {
			return none, err
		}
	}
	if pod, ok := any(object).(*corev1.Pod); ok && !equality.Semantic.DeepEqual(pod.Spec, any(old).(*corev1.Pod).Spec) {
		pod.Generation++
	}
	if equality.Semantic.DeepEqual(object, old) {
		return old, nil
	}
	s.replace(k, object)
	if object.GetDeletionTimestamp() != nil && len(old.GetFinalizers()) > 0 && len(object.GetFinalizers()) == 0 {
		s.remove(k, object.GetName())
	}
	return object, nil
}

// edit changes an object of the truth, as a user or another controller does.
func edit[T metav1.Object](s *store, k kind, name string, change func(T)) bool {
	old, found := lookup[T](s, k, name)
	if !found {
		return false
	}
	object := copyOf(old)
	change(object)
	if service, ok := any(object).(*corev1.Service); ok && s.admitService(service, any(old).(*corev1.Service)) != nil {
		return false
	}
	if equality.Semantic.DeepEqual(object, old) {
		return false
	}
	s.replace(k, object)
	return true
}

// remove takes an object out of the store.
func (s *store) remove(k kind, name string) {
	object := s.tables[k].get(name)
	if object == nil {
		return
	}
	s.tables[k].drop(name)
	s.versions[k]++
	s.record(k, object, true)
}

// deleteObject does what a DELETE request does.
func (s *store) deleteObject(k kind, name string, only metav1.Preconditions) error {
	object := s.tables[k].get(name)
	if object == nil {
		return apierrors.NewNotFound(k.resource(), name)
	}
	if (only.UID != nil && *only.UID != object.GetUID()) ||
		(only.ResourceVersion != nil && *only.ResourceVersion != object.GetResourceVersion()) {
		return apierrors.NewConflict(k.resource(), name, errPrecondition)
	}
	switch k {
	case kindPod:
		s.deletePod(object.(*corev1.Pod))
	case kindClaim:
		s.deleteClaim(object.(*corev1.PersistentVolumeClaim))
	case kindCluster:
		s.deleteCluster(object.(*v1beta2.EtcdCluster))
	default:
		s.remove(k, name)
	}
	return nil
}

// deleteCluster deletes a cluster when nothing holds it any more.
func (s *store) deleteCluster(cluster *v1beta2.EtcdCluster) {
	switch {
	case len(cluster.Finalizers) == 0:
		s.remove(kindCluster, cluster.Name)
	case cluster.DeletionTimestamp == nil:
		s.terminate(kindCluster, cluster)
	}
}

// deletePod asks a pod to go; one that no node runs goes at once.
func (s *store) deletePod(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		s.remove(kindPod, pod.Name)
		return
	}
	if pod.DeletionTimestamp == nil {
		s.terminate(kindPod, pod)
	}
}

// deleteClaim deletes a claim when no pod uses it any more.
func (s *store) deleteClaim(claim *corev1.PersistentVolumeClaim) {
	s.w.checks.losing(claim)
	if s.claimInUse(claim.Name) {
		if claim.DeletionTimestamp == nil {
			s.terminate(kindClaim, claim)
		}
		return
	}
	s.remove(kindClaim, claim.Name)
}

func (s *store) terminate(k kind, object metav1.Object) {
	marked := copyOf(object)
	marked.SetDeletionTimestamp(ptr.To(metav1.NewTime(s.w.Now())))
	s.replace(k, marked)
}

func (s *store) claimInUse(name string) bool {
	for _, object := range s.list(kindPod) {
		pod := object.(*corev1.Pod)
		if claimName(pod) == name && pod.Spec.NodeName != "" && !finished(pod) {
			return true
		}
	}
	return false
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// claimName returns the name of the claim that holds the data of a pod, or "".
func claimName(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			return claim.ClaimName
		}
	}
	return ""
}

// collectDelay is how long garbage collection takes at most.
const collectDelay = 5 * time.Second

// changed lets everybody who watches know.
func (w *World) changed(k kind, object metav1.Object, deleted bool) {
	for _, c := range w.controllers {
		c.cache.announce(k)
	}
	switch k {
	case kindPod:
		w.podChanged(object.(*corev1.Pod), deleted)
	case kindClaim:
		if deleted {
			w.etcd.destroyClaim(string(object.GetUID()))
		} else {
			w.doomWithClaim(object.GetName())
		}
	case kindCluster:
		if deleted {
			w.collectGarbage(object.GetUID())
		}
	case kindService:
		w.checks.recording(object.(*corev1.Service))
	case kindSecret:
		w.secretChanged(object.(*corev1.Secret))
	case kindBudget, kinds:
	}
}

// collectGarbage deletes what an object that is gone owned, one after the other.
func (w *World) collectGarbage(owner types.UID) {
	for k := kind(0); k < kinds; k++ {
		for _, object := range w.store.list(k) {
			if ref := metav1.GetControllerOf(object); ref == nil || ref.UID != owner {
				continue
			}
			name, uid := object.GetName(), object.GetUID()
			w.after(w.dice.between(10*time.Millisecond, collectDelay), func() {
				_ = w.store.deleteObject(k, name, metav1.Preconditions{UID: &uid})
			})
		}
	}
}
