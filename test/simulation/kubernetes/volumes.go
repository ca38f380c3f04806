// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
)

// finalizePVCs removes PVCs that were deleted and that no pod uses any more.
func (w *World) finalizePVCs() {
	for _, object := range w.Store.List(KindPVC) {
		if object.GetDeletionTimestamp() != nil && !w.Store.pvcInUse(object.GetName()) {
			w.Store.Remove(KindPVC, object.GetName())
		}
	}
}

// doomWithPVC marks the data of a pod that goes together with its volume. The end of the data is
// decided once both are deleted.
//
// A pod on a lost node never runs again, and Kubernetes removes the pod some time later. There, the
// loss of the node and the deletion of the PVC decide. What a controller does before the pod is
// removed cannot save the data, and no check may blame it. Any fault may take the bootstrap member of a
// cluster that has never served, and the controller may still publish that cluster to clients.
func (w *World) doomWithPVC(name string) {
	pod, found := Lookup[*corev1.Pod](w.Store, KindPod, name)
	pvc, bound := Lookup[PVC](w.Store, KindPVC, name)
	if found && bound && (pod.DeletionTimestamp != nil || w.isOnLostNode(pod)) && pvc.DeletionTimestamp != nil {
		w.Etcd.Doom(w.PVCDir(name))
	}
}

func (w *World) isOnLostNode(pod *corev1.Pod) bool {
	return slices.ContainsFunc(w.Nodes, func(n *Node) bool { return n.Lost && n.name == pod.Spec.NodeName })
}

// deletePVC deletes a PVC when no pod uses it any more.
func (s *Store) deletePVC(pvc *corev1.PersistentVolumeClaim) {
	s.w.Observer.RemovingPVC(pvc)
	if s.pvcInUse(pvc.Name) {
		if pvc.DeletionTimestamp == nil {
			s.terminate(KindPVC, pvc)
		}
		return
	}
	s.Remove(KindPVC, pvc.Name)
}

func (s *Store) pvcInUse(name string) bool {
	for _, object := range s.List(KindPod) {
		pod := object.(*corev1.Pod)
		if slices.Contains(pvcNames(pod), name) && pod.Spec.NodeName != "" && !HasFinished(pod) {
			return true
		}
	}
	return false
}

// PVCName returns the name of the PVC that holds the data of a pod, or "".
func PVCName(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		if pvc := pod.Spec.Volumes[i].PersistentVolumeClaim; pvc != nil {
			return pvc.ClaimName
		}
	}
	return ""
}

// pvcNames returns the names of all PVCs that a pod mounts. A recovery member may read the PVC of an old
// member beside its own one.
func pvcNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if pvc := pod.Spec.Volumes[i].PersistentVolumeClaim; pvc != nil {
			names = append(names, pvc.ClaimName)
		}
	}
	return names
}

// Volume implements etcd's network.
func (w *World) Volume(pvc string) *simetcd.DataDir { return w.PVCDir(pvc) }

// growthTakes is how long a volume takes to become larger.
const growthTakes = 5 * time.Second

var errNoExpansion = errors.New("the storage class does not allow it")

// bind gives the PVCs of a pod that has a node their volumes.
func (w *World) bind(pod *corev1.Pod) {
	for _, name := range pvcNames(pod) {
		if pvc, found := Lookup[PVC](w.Store, KindPVC, name); found && pvc.Status.Phase == corev1.ClaimPending {
			Edit(w.Store, KindPVC, name, func(pvc PVC) {
				pvc.Status.Phase = corev1.ClaimBound
				pvc.Status.Capacity = pvc.Spec.Resources.Requests.DeepCopy()
			})
		}
	}
}

// UpdatePVC is what the API makes of a changed PVC.
func UpdatePVC(s *Store, pvc PVC) (PVC, error) {
	old, err := Get[PVC](s, KindPVC, pvc.Name)
	if err != nil {
		return nil, err
	}
	was, is := old.Spec.Resources.Requests[corev1.ResourceStorage], pvc.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case is.Cmp(was) == 0:
		return Update(s, pvc)
	case is.Cmp(was) < 0, !s.w.Plan.Expandable:
		return nil, apierrors.NewForbidden(KindPVC.Resource(), pvc.Name, errNoExpansion)
	}
	updated, err := Update(s, pvc)
	if err == nil {
		s.w.After(growthTakes, func() {
			Edit(s, KindPVC, pvc.Name, func(c PVC) {
				if c.UID == updated.UID {
					c.Status.Capacity = updated.Spec.Resources.Requests.DeepCopy()
				}
			})
		})
	}
	return updated, err
}
