// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import corev1 "k8s.io/api/core/v1"

// Evidence says what is known about the end of a pod, and with it of the member in it.
type Evidence string

// Values of Evidence.
const (
	// PodUnknown: Kubernetes could not be read, so nothing is known.
	PodUnknown Evidence = "PodUnknown"
	// PodExists: the pod exists, and nothing says that it is about to end.
	PodExists Evidence = "PodExists"
	// DeletionRequested: the deletion of the pod was requested. That is no evidence of an
	// end: the member may serve for as long as its node does not hear of the request.
	DeletionRequested Evidence = "DeletionRequested"
	// PodFinished: the phase of the pod is Failed or Succeeded. The kubelet reports such a
	// phase only after all containers have ended. For an unresponsive node Kubernetes sets
	// it only after a person has added the taint node.kubernetes.io/out-of-service.
	PodFinished Evidence = "PodFinished"
	// PodAbsent: the pod does not exist. The kubelet removes a pod only after its containers
	// have ended. For an unresponsive node Kubernetes does so only after a person has
	// deleted the Node, added the taint node.kubernetes.io/out-of-service, or forced the
	// deletion.
	PodAbsent Evidence = "PodAbsent"
)

// EvidenceOf returns the evidence that a pod gives; nil is a pod that does not exist.
func EvidenceOf(pod *corev1.Pod) Evidence {
	if pod == nil {
		return PodAbsent
	}
	return EvidenceFrom(
		pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded,
		pod.DeletionTimestamp != nil)
}

// EvidenceFrom returns the evidence that an existing pod gives. A pod is finished if its
// phase is Failed or Succeeded, and terminating if its deletion was requested.
func EvidenceFrom(finished, terminating bool) Evidence {
	switch {
	case finished:
		return PodFinished
	case terminating:
		return DeletionRequested
	default:
		return PodExists
	}
}

// HasEnded is true if the evidence proves that no member runs in the pod.
func (e Evidence) HasEnded() bool { return e == PodAbsent || e == PodFinished }

// IsEnding is true if nothing may rely on the pod any more: it has ended or is about to.
func (e Evidence) IsEnding() bool { return e == DeletionRequested || e.HasEnded() }
