// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errPolicy = errors.New("exceeded quota: pods")

// Admission is what quotas and policies make of the objects that are created.
type Admission struct {
	// Changes is true if a policy changes pods: their registry, labels, tolerations, and a
	// second container.
	Changes bool
	// rejecting is until when objects are rejected that are created, and what is which.
	rejecting time.Duration
	what      Rejected
	// Rejected counts the requests that were rejected since Reject.
	Rejected int
}

// Rejected is what is rejected.
type Rejected int

// Values of Rejected.
const (
	RejectPods Rejected = iota
	RejectPodsAndPVCs
	RejectAll
)

func (r Rejected) has(k Kind) bool {
	return k == KindPod || k == KindPVC && r >= RejectPodsAndPVCs || r == RejectAll
}

// Reject has objects rejected that are created until a moment.
func (a *Admission) Reject(until time.Duration, what Rejected) {
	a.rejecting, a.what, a.Rejected = until, what, 0
}

// Admit ends the rejection.
func (a *Admission) Admit() { a.rejecting = 0 }

// admit returns an error for an object that is rejected, and changes others as a policy does.
// Old is the object that it replaces, or nil.
func (w *World) admit(k Kind, object, old metav1.Object) error {
	if old == nil && w.Elapsed < w.Admission.rejecting && w.Admission.what.has(k) {
		w.Admission.Rejected++
		w.Trace("%s %s is rejected", KindNames[k], object.GetName())
		return apierrors.NewForbidden(k.Resource(), object.GetName(), errPolicy)
	}
	pod, ok := object.(*corev1.Pod)
	if ok && w.Admission.Changes {
		changeByPolicy(pod, old == nil)
	}
	if ok && old == nil && w.Plan.Evicts {
		limitStay(pod)
	}
	return nil
}

const mirror = "mirror.example/"

// Requested returns the image that a policy has changed as it was requested.
func Requested(image string) string { return strings.TrimPrefix(image, mirror) }

// changeByPolicy changes a pod. An update may only change images.
func changeByPolicy(pod *corev1.Pod, created bool) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if c := &list[i]; !strings.HasPrefix(c.Image, mirror) {
				c.Image = mirror + c.Image
			}
		}
	}
	if !created {
		return
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, "mesh", "injected")
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "mesh/status", "injected")
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "pool", Operator: corev1.TolerationOpExists})
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Image: mirror + "proxy:v1.0.0"})
}
