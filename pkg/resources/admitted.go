// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationAdmittedImage on a pod is the image of etcd that the API admitted when the controller
// requested one. It differs from the requested image only where an admission policy has changed it.
// If the pod has another image now, something else has changed the pod since.
const AnnotationAdmittedImage = "etcd.database.coreos.com/admitted-image"

// ImageState says where the image of a pod comes from.
type ImageState int

// Values of ImageState.
const (
	// ImageAdmitted: it is what the controller requested, or what an admission policy made of that.
	ImageAdmitted ImageState = iota
	// ImageUnconfirmed: it is not what the controller requested, and the pod of an earlier release
	// does not say what was admitted. An admission policy or a person has changed it.
	ImageUnconfirmed
	// ImageChanged: something has changed it after it was admitted.
	ImageChanged
	// ImageUnnoted: it is what an admission policy made of the request, and the pod does not note it: the
	// controller ended before it could write the note. In a pod that is older than NoteWithin something else
	// may have set it.
	ImageUnnoted
)

// ImageStateOf returns where the image of etcd in a pod comes from.
func ImageStateOf(pod *corev1.Pod) ImageState {
	image := imageOf(pod)
	switch admitted := pod.Annotations[AnnotationAdmittedImage]; {
	case admitted != "" && admitted != image && isUntouched(pod):
		return ImageUnnoted
	case admitted != "" && admitted != image:
		return ImageChanged
	case admitted == "" && desiredImage(pod, image) != RequestedImage(pod):
		return ImageUnconfirmed
	default:
		return ImageAdmitted
	}
}

// isUntouched is true for a pod whose spec nothing has changed since it was created. Kubernetes counts the
// changes from 1.33 on, those of pods that are older from zero. There a change of the image has restarted
// the container.
func isUntouched(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == ContainerName && s.RestartCount > 0 {
			return false
		}
	}
	return pod.Generation == 1
}

// NoteWithin is for how long after the creation of a pod its image may still be noted as the admitted one. An
// older pod may be from a Kubernetes that did not count changes, and its first change may be that of its image.
const NoteWithin = time.Hour

// WithNote returns live with the note of the image that was admitted, and true if it lacks that note and is new.
func WithNote(live *corev1.Pod, now time.Time) (*corev1.Pod, bool) {
	if ImageStateOf(live) != ImageUnnoted || now.Sub(live.CreationTimestamp.Time) >= NoteWithin {
		return live, false
	}
	pod := live.DeepCopy()
	noteRequested(pod)
	return pod, true
}

// IsImageFromPolicy is true if an admission policy has changed the image of etcd when the controller requested
// it last. Many policies do that for new pods only. So another image is better requested with a new pod.
func IsImageFromPolicy(pod *corev1.Pod) bool {
	admitted := pod.Annotations[AnnotationAdmittedImage]
	if ImageStateOf(pod) == ImageUnnoted {
		admitted = imageOf(pod)
	}
	return admitted != "" && desiredImage(pod, admitted) != RequestedImage(pod)
}

// HasOtherInitImage is true if an init container of the controller has not ended, and has another image than a new pod
// would request. An admission policy has changed that image, or an earlier release has requested it. Agent is the image
// of the agent and the launcher. Init containers of other programs do not count.
func (p Platform) HasOtherInitImage(pod *corev1.Pod, agent string) bool {
	requested, _ := p.moved(agent)
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		ours := slices.Contains([]string{InitLauncher, InitInstall, InitFetch, InitRestore}, c.Name)
		ended := slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == c.Name && s.State.Terminated != nil
		})
		if ours && !ended && c.Image != requested && c.Image != imageOf(pod) {
			return true
		}
	}
	return false
}

// noteRequested notes that the image of etcd in a pod that is about to be written is requested. The
// API admits it as it is, unless a policy changes it: see NoteAdmitted.
func noteRequested(pod *corev1.Pod) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationAdmittedImage, imageOf(pod))
}

// NoteAdmitted returns the response to a write, and true if an admission policy has changed the image that
// was requested with this write. Then the note in the response names the changed image, and the container
// that ran before the write, which the kubelet replaces. What a policy makes of the image that something
// else has set is not noted.
func NoteAdmitted(before, requested, response *corev1.Pod) (*corev1.Pod, bool) {
	asked, image := imageOf(requested), imageOf(response)
	if image == asked || image == response.Annotations[AnnotationAdmittedImage] || ImageStateOf(requested) != ImageAdmitted {
		return response, false
	}
	pod := response.DeepCopy()
	noteRequested(pod)
	// The response may show the next container already.
	if id := containerID(before); id != "" && id == containerID(response) && imageOf(before) != image {
		supersede(pod, imageOf(before))
	}
	return pod, true
}

// EtcdImage returns the image of etcd in a pod.
func EtcdImage(pod *corev1.Pod) string { return imageOf(pod) }
