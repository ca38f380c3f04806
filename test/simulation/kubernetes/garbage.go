// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CollectDelay is how long garbage collection takes at most.
const CollectDelay = 5 * time.Second

// collectWindow is between the look of garbage collection at an object and its deletion. In
// older releases of Kubernetes, a change of the owner references in between does not keep the
// object.
const collectWindow = 10 * time.Millisecond

// changed lets every watch know.
func (w *World) changed(k Kind, object metav1.Object, deleted bool) {
	for _, c := range w.Caches {
		c.announce(k)
	}
	switch k {
	case KindPod:
		w.podChanged(object.(*corev1.Pod), deleted)
	case KindPVC:
		if deleted {
			w.Etcd.DestroyPVC(string(object.GetUID()))
		} else {
			w.doomWithPVC(object.GetName())
		}
	case KindCluster:
		if deleted {
			w.collectGarbage(object.GetUID())
		}
	case KindService:
		w.Observer.ServiceChanged(object.(*corev1.Service))
	case KindRecord:
		w.Observer.RecordChanged(object.(*corev1.ConfigMap))
	case KindSecret:
		w.secretChanged(object.(*corev1.Secret), deleted)
	case KindBudget, Kinds:
	}
}

// collectGarbage deletes what a removed object owned, one after the other. What has lost the
// owner reference by then stays. An owner that is back meanwhile saves nothing: garbage
// collection remembers that it did not exist.
func (w *World) collectGarbage(owner types.UID) {
	for k := Kind(0); k < Kinds; k++ {
		for _, object := range w.Store.List(k) {
			if !isOwnedBy(object, owner) {
				continue
			}
			name, uid := object.GetName(), object.GetUID()
			w.After(w.Dice.Between(collectWindow, CollectDelay)-collectWindow, func() {
				present := w.Store.Tables[k].Get(name)
				if present == nil || !isOwnedBy(present, owner) {
					return
				}
				w.After(collectWindow, func() {
					_ = w.Store.DeleteObject(k, name, metav1.Preconditions{UID: &uid})
				})
			})
		}
	}
}

func isOwnedBy(object metav1.Object, owner types.UID) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && ref.UID == owner
}
