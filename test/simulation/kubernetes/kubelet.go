// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
)

// Run is a pod as the kubelet of its node sees it.
type Run struct {
	w        *World
	name     string
	uid      string
	Node     *Node
	ip       string
	EmptyDir *simetcd.DataDir
	Process  *simetcd.Process
	restarts int
	// starting is true while a start of the container is on its way, and generation
	// tells such starts apart from those of before.
	starting   bool
	generation int
	// launching is true while the launcher waits in the container for a member.
	launching bool
	image     string
	// containers counts the containers that were made, and seen is the generation of the pod
	// that the kubelet knows. late is true while the kubelet has not reported that it has
	// restarted a container for another image.
	containers int
	seen       int64
	late       bool
	// Rolling is true from a change of the image until the container made from it is ready.
	Rolling bool
	// mounts is what the volumes hold, by the name of the secret.
	mounts map[string]*corev1.Secret
	// told is which certificates the annotation of the pod asks for.
	told string
	// ready is what the last probe said, and probeAt when the opposite is noticed.
	ready   bool
	probing bool
	Over    bool
}

const (
	backoffBase = 10 * time.Second
	backoffMax  = 5 * time.Minute
)

// podChanged is what the scheduler and the kubelets make of a change of a pod.
func (w *World) podChanged(pod *corev1.Pod, deleted bool) {
	r := w.RunOf(string(pod.UID))
	switch {
	case deleted:
		if r != nil {
			r.forget()
		}
		w.finalizePVCs()
	case r == nil:
		r = &Run{w: w, name: pod.Name, uid: string(pod.UID)}
		if PVCName(pod) == "" {
			r.EmptyDir = w.Etcd.NewDir()
		}
		w.Runs = append(w.Runs, r)
		w.After(w.Dice.Between(5*time.Millisecond, 100*time.Millisecond), r.schedule)
	case pod.DeletionTimestamp != nil:
		r.terminate()
	case r.IsSevered(): // it hears of it later
		r.owe(pod)
	case HasFinished(pod):
		r.Halt()
		w.Etcd.Doom(r.EmptyDir)
		w.finalizePVCs()
	case r.image != "" && simetcd.Image(pod) != r.image:
		r.upgrade()
	case r.launching && !resources.IsPrepared(pod.Annotations):
		r.admit()
	case r.mounts != nil && pod.Annotations[resources.AnnotationCertificates] != r.told:
		r.told = pod.Annotations[resources.AnnotationCertificates]
		r.remount(true)
	}
}

// Name is that of the pod.
func (r *Run) Name() string { return r.name }

// UID is that of the pod.
func (r *Run) UID() string { return r.uid }

// IP is that of the pod, once it has run.
func (r *Run) IP() string { return r.ip }

// Mounts is what the volumes hold, by the name of the Secret.
func (r *Run) Mounts() map[string]*corev1.Secret { return r.mounts }

// RunOf returns the run of the pod with a UID, or nil.
func (w *World) RunOf(uid string) *Run {
	for _, r := range w.Runs {
		if r.uid == uid {
			return r
		}
	}
	return nil
}

// Pod returns the pod of r as it is now.
func (r *Run) Pod() (*corev1.Pod, bool) {
	pod, found := Lookup[*corev1.Pod](r.w.Store, KindPod, r.name)
	return pod, found && string(pod.UID) == r.uid
}

// schedule binds the pod to a node, when there is one and its PVC exists.
func (r *Run) schedule() {
	pod, found := r.Pod()
	if !found || pod.DeletionTimestamp != nil || HasFinished(pod) {
		return
	}
	n := r.w.placeOf(pod)
	if n == nil || !r.volumeExists(pod) {
		if !isUnschedulable(pod) {
			Edit(r.w.Store, KindPod, r.name, func(pod *corev1.Pod) { r.w.SetCondition(pod, corev1.PodScheduled, corev1.ConditionFalse) })
		}
		r.w.After(r.w.Dice.Between(time.Second, 2*time.Second), r.schedule)
		return
	}
	r.Node, r.seen = n, pod.Generation
	r.w.tie(pod, n)
	r.w.bind(pod)
	Edit(r.w.Store, KindPod, r.name, func(pod *corev1.Pod) {
		pod.Spec.NodeName = n.name
		pod.Status.Phase = corev1.PodPending
		r.w.SetCondition(pod, corev1.PodScheduled, corev1.ConditionTrue)
		r.waiting(pod, "ContainerCreating")
	})
	r.startIn(r.w.startDelay())
}

func (r *Run) volumeExists(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pvcNames(pod), func(name string) bool {
		pvc, found := Lookup[PVC](r.w.Store, KindPVC, name)
		return !found || pvc.DeletionTimestamp != nil
	})
}

// terminate lets the container end and then forgets the pod. On a machine that is down,
// neither happens.
func (r *Run) terminate() {
	r.w.Etcd.Doom(r.EmptyDir)
	r.w.doomWithPVC(r.name)
	if r.Over {
		return
	}
	r.w.After(r.w.Dice.Between(50*time.Millisecond, 3*time.Second), func() {
		if r.Node != nil && !r.Node.Hears() {
			return
		}
		r.Halt()
		r.w.After(r.w.Dice.Between(10*time.Millisecond, 500*time.Millisecond), r.finish)
	})
}

// finish removes the pod from the API after its container has ended.
func (r *Run) finish() {
	if pod, found := r.Pod(); found && pod.DeletionTimestamp != nil && (r.Node == nil || r.Node.Hears()) {
		r.w.Store.Remove(KindPod, r.name)
	}
}

// forget is for a pod that the API no longer has: if its node is up, the container
// ends in a moment.
func (r *Run) forget() {
	if r.Over {
		return
	}
	if r.IsSevered() {
		r.Halt() // removing such a pod states that its machine is off
	}
	r.Over = true
	r.w.Etcd.Doom(r.EmptyDir)
	r.w.After(r.w.Dice.Between(10*time.Millisecond, 2*time.Second), func() {
		r.Halt()
		r.w.Etcd.Destroy(r.EmptyDir)
		r.w.dropRun(r)
	})
}

func (w *World) dropRun(r *Run) {
	for i := range w.Runs {
		if w.Runs[i] == r {
			w.Runs = append(w.Runs[:i:i], w.Runs[i+1:]...)
			return
		}
	}
}
