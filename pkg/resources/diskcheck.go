// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// DiskCheckVolume is the volume of the pod of a disk check. Its PVC is called
	// POD-DiskCheckVolume.
	DiskCheckVolume = "volume"
	// ContainerDiskTest is the container that writes.
	ContainerDiskTest = "disktest"

	diskCheckName = "etcd-diskcheck"
	// diskCheckTTL is how long Kubernetes keeps a finished Job that the plugin has not deleted,
	// in seconds.
	diskCheckTTL = 600
	metadataName = "metadata.name"
)

// DiskCheck says which disk is measured.
type DiskCheck struct {
	Namespace string
	// Image of the agent, and the Secrets to pull it.
	Image            string
	ImagePullSecrets []corev1.LocalObjectReference
	// StorageClass of the PVC; "" is the default class of Kubernetes.
	StorageClass string
	Size         resource.Quantity
	// Node to run on; "" is any.
	Node string
	// Writes to make, and how long they may take.
	Writes int
	Limit  time.Duration
	// Deadline is when Kubernetes ends the Job, from its start.
	Deadline time.Duration
}

// Job returns the Job that measures. Its PVC is an ephemeral volume: Kubernetes creates it for the
// pod, on the node of the pod if the class waits for it, and deletes it with the pod. The Job ends
// and is deleted even if the plugin was killed.
func (d DiskCheck) Job() *batchv1.Job {
	labels := map[string]string{LabelApp: diskCheckName}
	container := newAgentContainer(ContainerDiskTest, d.Image, []string{
		string(agent.CommandDiskTest), agent.VolumeDir,
		"--" + agent.DiskTestWritesFlag + "=" + strconv.Itoa(d.Writes), "--" + agent.DiskTestLimitFlag + "=" + d.Limit.String(),
	}, []corev1.VolumeMount{{Name: DiskCheckVolume, MountPath: agent.VolumeDir}})
	// The log says why the agent did not start.
	container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	pod := corev1.PodSpec{
		Containers:                   []corev1.Container{*container},
		ImagePullSecrets:             d.ImagePullSecrets,
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: ptr.To(false),
		EnableServiceLinks:           ptr.To(false),
		SecurityContext:              podSecurityContext(&v1beta2.PodPolicy{}),
		NodeSelector:                 map[string]string{corev1.LabelOSStable: linux},
		Volumes:                      []corev1.Volume{{Name: DiskCheckVolume, VolumeSource: corev1.VolumeSource{Ephemeral: d.volume(labels)}}},
	}
	if d.Node != "" {
		d.placeOnNode(&pod)
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: diskCheckName + "-", Namespace: d.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit:            ptr.To[int32](0),
			ActiveDeadlineSeconds:   ptr.To(int64(d.Deadline.Seconds())),
			TTLSecondsAfterFinished: ptr.To[int32](diskCheckTTL),
			Template:                corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

func (d DiskCheck) volume(labels map[string]string) *corev1.EphemeralVolumeSource {
	pvc := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: d.Size}},
	}
	if d.StorageClass != "" {
		pvc.StorageClassName = &d.StorageClass
	}
	return &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pvc}}
}

// placeOnNode makes the scheduler choose one node. A pod that names its node itself would not be
// scheduled, and a class that waits for the scheduler would never make its volume.
func (d DiskCheck) placeOnNode(pod *corev1.PodSpec) {
	pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metadataName, Operator: corev1.NodeSelectorOpIn, Values: []string{d.Node}},
		}}},
	}}}
	// Nodes for etcd often have taints. The user has named the node.
	pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
}
