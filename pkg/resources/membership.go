// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// A prepared pod is made before its member: it is scheduled, its volumes are mounted
// and the container of etcd runs, but what runs in it is the launcher, which waits. So
// nothing outside of etcd, such as a quota, a policy, a node or an image, can hold up a
// change of the membership once that has begun. When the member was added, the pod is
// admitted: its annotations name the initial cluster. The launcher becomes etcd as soon as
// the kubelet has written that to a file, or a notice of the controller says it.
const (
	// AnnotationMembership with the value Awaited on a pod or a PVC says
	// that no member has used it yet. Admitted removes the annotation, and only a Kubernetes that is restored from
	// an older state of its own etcd brings it back. The value Joining is for the PVC of the second voter of an etcd without
	// learners, until a quorum says that this voter has started. The list of members does not change before.
	// The value Unfilled is for the PVC of a recovery member that lost its volume during the cutover of a restore.
	AnnotationMembership = "etcd.database.coreos.com/membership"
	MembershipAwaited    = "Awaited"
	MembershipJoining    = "Joining"
	MembershipUnfilled   = "Unfilled"

	// AnnotationNoticeKey on a prepared pod is the public key of the controller that made it. The
	// launcher believes notices that are signed with it.
	AnnotationNoticeKey = "etcd.database.coreos.com/notice-key"
)

const (
	// InitLauncher is the init container that brings the launcher into the pod.
	InitLauncher = "install-launcher"

	launcherProgram  = "/launcher"
	launcherVolume   = "etcd-launcher"
	launcherDir      = "/opt/etcd-launcher"
	membershipVolume = "etcd-membership"
	membershipDir    = "/etc/etcd-membership"
	membershipFile   = "initial-cluster"
)

// prepare makes pod wait for its member. Its container starts through the launcher,
// with the command of any other member as the arguments.
func prepare(c *v1beta2.EtcdCluster, pod *corev1.Pod, m *MemberPod) {
	pod.Annotations[AnnotationMembership] = MembershipAwaited
	if m.NoticeKey != "" {
		pod.Annotations[AnnotationNoticeKey] = m.NoticeKey
	}
	// etcd that is started without the launcher finds no member to join, and ends.
	delete(pod.Annotations, AnnotationInitialCluster)
	pod.Annotations[AnnotationInitialState] = stateExisting
	etcd := &pod.Spec.Containers[0]
	etcd.Command = slices.Concat([]string{launcherDir + launcherProgram, "run"}, probeFlags(etcd.StartupProbe),
		[]string{membershipDir + "/" + membershipFile}, etcd.Command)
	shared := corev1.VolumeMount{Name: launcherVolume, MountPath: launcherDir}
	install := corev1.Container{
		Name:            InitLauncher,
		Image:           m.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{launcherProgram, "install", launcherDir},
		VolumeMounts:    []corev1.VolumeMount{shared},
		// As much as etcd has: less would change the quality of service of the pod, and
		// more would change what the pod takes from a quota.
		Resources:       *etcd.Resources.DeepCopy(),
		SecurityContext: containerSecurityContext(podPolicy(c)),
	}
	shared.ReadOnly = true
	etcd.VolumeMounts = append(etcd.VolumeMounts, shared,
		corev1.VolumeMount{Name: membershipVolume, MountPath: membershipDir, ReadOnly: true})
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, install)
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: launcherVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: membershipVolume, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{
				{Path: membershipFile, FieldRef: annotationField(AnnotationInitialCluster)},
				{Path: notice.KeyFile, FieldRef: annotationField(AnnotationNoticeKey)},
				{Path: notice.UIDFile, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.uid"}},
			},
		}}},
	)
}

// probeFlags are the flags with which the launcher lets the startup probe of etcd succeed.
func probeFlags(probe *corev1.Probe) []string {
	switch {
	case probe == nil:
		return nil
	case probe.HTTPGet != nil:
		return []string{"--answer-http=" + strconv.Itoa(probe.HTTPGet.Port.IntValue())}
	case probe.TCPSocket != nil:
		return []string{"--answer-tcp=" + strconv.Itoa(probe.TCPSocket.Port.IntValue())}
	default:
		return nil
	}
}

// NoticePort returns the port at which the launcher in a pod takes notices; 0 if it takes none,
// as with versions of etcd whose startup probe is not HTTP.
func NoticePort(pod *corev1.Pod) int {
	probe := pod.Spec.Containers[0].StartupProbe
	if pod.Annotations[AnnotationNoticeKey] == "" || probe == nil || probe.HTTPGet == nil {
		return 0
	}
	return probe.HTTPGet.Port.IntValue()
}

// IsPrepared is true for a pod or a PVC that no member has used yet.
func IsPrepared(annotations map[string]string) bool {
	return annotations[AnnotationMembership] == MembershipAwaited
}

// Admitted returns the prepared pod live so that etcd starts in it as a member of the
// initial cluster peers, and whether that is a change.
func Admitted(live *corev1.Pod, peers []Peer) (*corev1.Pod, bool) {
	if !IsPrepared(live.Annotations) {
		return live, false
	}
	pod := live.DeepCopy()
	delete(pod.Annotations, AnnotationMembership)
	pod.Annotations[AnnotationInitialCluster] = initialCluster(peers)
	pod.Annotations[AnnotationInitialState] = stateExisting
	return pod, true
}

// PreparedPVC returns the PVC of a prepared pod; nil if the members of c have no
// volumes of their own.
func PreparedPVC(c *v1beta2.EtcdCluster, member string) *corev1.PersistentVolumeClaim {
	pvc := PVC(c, member)
	if pvc != nil {
		pvc.Annotations[AnnotationMembership] = MembershipAwaited
	}
	return pvc
}

// AdmittedPVC returns live as the PVC of a member, and whether that is a change. With
// secondVoter the PVC says that its member is joining.
func AdmittedPVC(live *corev1.PersistentVolumeClaim, secondVoter bool) (*corev1.PersistentVolumeClaim, bool) {
	if !IsPrepared(live.Annotations) {
		return live, false
	}
	pvc := live.DeepCopy()
	delete(pvc.Annotations, AnnotationMembership)
	if secondVoter {
		pvc.Annotations[AnnotationMembership] = MembershipJoining
	}
	return pvc, true
}

// IsJoining is true for the PVC of a second voter until JoinedPVC.
func IsJoining(pvc *corev1.PersistentVolumeClaim) bool {
	return pvc.Annotations[AnnotationMembership] == MembershipJoining
}

// JoinedPVC returns live as the PVC of a member that has started, and whether that is a change.
func JoinedPVC(live *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, bool) {
	waits := IsJoining(live) || IsPrepared(live.Annotations)
	if !waits && TakenBackFrom(live) == "" {
		return live, false
	}
	pvc := live.DeepCopy()
	if waits {
		delete(pvc.Annotations, AnnotationMembership)
	}
	delete(pvc.Annotations, AnnotationTakenBackFrom)
	return pvc, true
}
