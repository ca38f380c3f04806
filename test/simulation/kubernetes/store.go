// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"reflect"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// change is one entry of the log that watches follow.
type change struct {
	version string
	object  metav1.Object
	deleted bool
}

// Store is the Kubernetes API with the truth. An object in it is never changed, but
// replaced.
type Store struct {
	w      *World
	Tables [Kinds]table
	log    [Kinds][]change
	// Versions holds the newest resource version of each kind: the kinds are those of
	// two APIs, and of one the versions may go back.
	Versions [Kinds]int64
	uids     int
}

// firstVersion is the resource version of an empty store.
const firstVersion = 100

func newStore(w *World) *Store {
	s := &Store{w: w}
	for k := range s.Versions {
		s.Versions[k] = firstVersion
	}
	return s
}

func (s *Store) nextVersion(k Kind) string {
	s.Versions[k]++
	return strconv.FormatInt(s.Versions[k], 10)
}

// List returns the objects of a kind in the order of their names.
func (s *Store) List(k Kind) []metav1.Object {
	t := &s.Tables[k]
	list := make([]metav1.Object, 0, len(t.names))
	for _, name := range t.names {
		list = append(list, t.byName[name])
	}
	return list
}

// Record appends a change to the log that watches follow.
func (s *Store) Record(k Kind, object metav1.Object, deleted bool) {
	s.log[k] = append(s.log[k], change{version: strconv.FormatInt(s.Versions[k], 10), object: object, deleted: deleted})
	s.w.changed(k, object, deleted)
}

// Lookup returns an object of the truth.
func Lookup[T metav1.Object](s *Store, k Kind, name string) (T, bool) {
	object, found := s.Tables[k].Get(name).(T)
	return object, found
}

// Get does what a GET request does.
func Get[T metav1.Object](s *Store, k Kind, name string) (T, error) {
	object, found := Lookup[T](s, k, name)
	if !found {
		return object, apierrors.NewNotFound(k.Resource(), name)
	}
	return object, nil
}

// Create does what a POST request does.
func Create[T metav1.Object](s *Store, object T) (T, error) {
	k := KindOf(object)
	var none T
	if _, taken := Lookup[T](s, k, object.GetName()); taken {
		return none, apierrors.NewAlreadyExists(k.Resource(), object.GetName())
	}
	object = copyOf(object)
	s.uids++
	object.SetUID(types.UID(KindNames[k] + "-" + strconv.Itoa(s.uids)))
	object.SetCreationTimestamp(metav1.NewTime(s.w.Now()))
	object.SetGeneration(1)
	if service, ok := any(object).(*corev1.Service); ok {
		if err := s.admitService(service, nil); err != nil {
			return none, err
		}
	}
	if pvc, ok := any(object).(PVC); ok {
		pvc.Status.Phase = corev1.ClaimPending
	}
	if err := s.w.admit(k, object, nil); err != nil {
		return none, err
	}
	s.replace(k, object)
	if ref := metav1.GetControllerOf(object); ref != nil && !s.exists(ref.UID) {
		s.w.collectGarbage(ref.UID)
	}
	return object, nil
}

// exists is true if a cluster with this UID is there; nothing else owns objects here.
func (s *Store) exists(uid types.UID) bool {
	cluster, found := Lookup[*v1beta2.EtcdCluster](s, KindCluster, schedules.ClusterName)
	return found && cluster.UID == uid
}

// replace puts an object into the store under a new resource version.
func (s *Store) replace(k Kind, object metav1.Object) {
	object.SetResourceVersion(s.nextVersion(k))
	s.Tables[k].Put(object)
	s.Record(k, object, false)
}

// Update replaces an object if its resource version is that of the truth, or empty.
func Update[T metav1.Object](s *Store, object T) (T, error) {
	k := KindOf(object)
	var none T
	old, found := Lookup[T](s, k, object.GetName())
	if !found || (object.GetUID() != "" && object.GetUID() != old.GetUID()) {
		return none, apierrors.NewNotFound(k.Resource(), object.GetName())
	}
	if v := object.GetResourceVersion(); v != "" && v != old.GetResourceVersion() {
		return none, apierrors.NewConflict(k.Resource(), object.GetName(), ErrModified)
	}
	object = copyOf(object)
	object.SetResourceVersion(old.GetResourceVersion())
	if service, ok := any(object).(*corev1.Service); ok {
		if err := s.admitService(service, any(old).(*corev1.Service)); err != nil {
			return none, err
		}
	}
	if err := s.w.admit(k, object, old); err != nil {
		return none, err
	}
	if pod, ok := any(object).(*corev1.Pod); ok && !isSame(&pod.Spec, &any(old).(*corev1.Pod).Spec) {
		pod.Generation++
	}
	if isUnchanged(object, old) {
		return old, nil
	}
	s.replace(k, object)
	if object.GetDeletionTimestamp() != nil && len(old.GetFinalizers()) > 0 && len(object.GetFinalizers()) == 0 {
		s.Remove(k, object.GetName())
	}
	return object, nil
}

// Edit changes an object of the truth, as a user or another controller does.
func Edit[T metav1.Object](s *Store, k Kind, name string, change func(T)) bool {
	old, found := Lookup[T](s, k, name)
	if !found {
		return false
	}
	object := copyOf(old)
	change(object)
	if service, ok := any(object).(*corev1.Service); ok && s.admitService(service, any(old).(*corev1.Service)) != nil {
		return false
	}
	if isUnchanged(object, old) {
		return false
	}
	s.replace(k, object)
	return true
}

// isUnchanged compares two versions of an object. The status of what has one changes most
// often, so it is compared first.
func isUnchanged(object, old metav1.Object) bool {
	switch object := object.(type) {
	case *corev1.Pod:
		if !isSame(&object.Status, &old.(*corev1.Pod).Status) {
			return false
		}
	case *v1beta2.EtcdCluster:
		if !isSame(&object.Status, &old.(*v1beta2.EtcdCluster).Status) {
			return false
		}
	}
	return isSame(object, old)
}

// isSame compares as the API does. reflect.DeepEqual is stricter and several times faster.
func isSame(a, b any) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b)
}

// Remove takes an object out of the store.
func (s *Store) Remove(k Kind, name string) {
	object := s.Tables[k].Get(name)
	if object == nil {
		return
	}
	s.Tables[k].drop(name)
	s.Versions[k]++
	s.Record(k, object, true)
}

// DeleteObject does what a DELETE request does.
func (s *Store) DeleteObject(k Kind, name string, only metav1.Preconditions) error {
	object := s.Tables[k].Get(name)
	if object == nil {
		return apierrors.NewNotFound(k.Resource(), name)
	}
	if (only.UID != nil && *only.UID != object.GetUID()) ||
		(only.ResourceVersion != nil && *only.ResourceVersion != object.GetResourceVersion()) {
		return apierrors.NewConflict(k.Resource(), name, errPrecondition)
	}
	switch k {
	case KindPod:
		s.DeletePod(object.(*corev1.Pod))
	case KindPVC:
		s.deletePVC(object.(*corev1.PersistentVolumeClaim))
	case KindCluster:
		s.DeleteCluster(object.(*v1beta2.EtcdCluster))
	default:
		s.Remove(k, name)
	}
	return nil
}

// DeleteCluster deletes a cluster when nothing holds it any more.
func (s *Store) DeleteCluster(cluster *v1beta2.EtcdCluster) {
	switch {
	case len(cluster.Finalizers) == 0:
		s.Remove(KindCluster, cluster.Name)
	case cluster.DeletionTimestamp == nil:
		s.terminate(KindCluster, cluster)
	}
}

// DeletePod asks a pod to go; one that no node runs goes at once.
func (s *Store) DeletePod(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		s.Remove(KindPod, pod.Name)
		return
	}
	if pod.DeletionTimestamp == nil {
		s.terminate(KindPod, pod)
	}
}

func (s *Store) terminate(k Kind, object metav1.Object) {
	marked := copyOf(object)
	marked.SetDeletionTimestamp(ptr.To(metav1.NewTime(s.w.Now())))
	s.replace(k, marked)
}
