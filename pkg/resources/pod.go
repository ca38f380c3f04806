// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ContainerName is the name of the container that runs etcd.
const ContainerName = "etcd"

const (
	dataVolume              = "etcd-data"
	defaultTerminationGrace = 30
)

// Peer is one entry of --initial-cluster.
type Peer struct{ Name, URL string }

// MemberPod is what distinguishes the pod of one member from that of another.
type MemberPod struct {
	// Name of the member and of its pod, <cluster>-<suffix>.
	Name string
	// Bootstrap is true for the member that starts a new cluster. Every other member joins an
	// existing one.
	Bootstrap bool
	// Learner is true for a member that does not vote yet.
	Learner bool
	// Joined is true for a member that comes back to its data, and must not start without.
	Joined bool
	// Prepared is true for a pod that is made before its member. Image holds the launcher that
	// waits in it, and NoticeKey is the key of the notices that the launcher believes.
	Prepared         bool
	Image, NoticeKey string
	// InitialCluster lists all members, including this member.
	InitialCluster []Peer
	// Token is the initial cluster token of a bootstrap member: the UID of the cluster, so that
	// two clusters of one name never take each other for the same.
	Token string
	// PeerFormat and ServerFormat say how the user's secrets name their entries.
	PeerFormat, ServerFormat SecretFormat
	// Trust, CAs and Certificates, if not empty, are noted as the annotations of
	// these names.
	Trust, CAs, Certificates string
}

// Pod returns the pod of a member. Kubernetes restarts it in place; no workload controller
// replaces it, because only etcd and the controller decide about membership.
func Pod(c *v1beta2.EtcdCluster, m MemberPod) *corev1.Pod {
	policy := podPolicy(c)
	meta := objectMeta(c, m.Name, policy.Labels, policy.Annotations)
	meta.Labels[LabelMember] = m.Name
	meta.Labels[LabelRole] = role(m.Learner)
	meta.Annotations[AnnotationVersion] = Version(c)
	meta.Annotations[AnnotationImage] = Image(c)
	meta.Annotations = merged(merged(meta.Annotations, versionAnnotations(c)), initialAnnotations(c, m))
	for name, value := range map[string]string{
		AnnotationTrust: m.Trust, AnnotationCAs: m.CAs, AnnotationCertificates: m.Certificates,
	} {
		if value != "" && c.Spec.TLS != nil {
			meta.Annotations[name] = value
		}
	}
	volumes, _ := tlsVolumes(c)
	own := policy.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			Hostname:                      m.Name,
			Subdomain:                     c.Name,
			Containers:                    []corev1.Container{container(c, m)},
			Volumes:                       append([]corev1.Volume{data(c, m.Name)}, volumes...),
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: ptr.To(ptr.Deref(own.TerminationGracePeriodSeconds, defaultTerminationGrace)),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			NodeSelector:                  own.NodeSelector,
			Affinity:                      affinity(c),
			Tolerations:                   tolerations(c),
			TopologySpreadConstraints:     spread(c),
			PriorityClassName:             own.PriorityClassName,
			ImagePullSecrets:              own.ImagePullSecrets,
			SecurityContext:               podSecurityContext(policy),
		},
	}
	if m.Prepared {
		prepare(c, pod, &m)
	}
	markTemplate(c, pod)
	noteRequested(pod)
	return pod
}

// container returns the one container of a member.
func container(c *v1beta2.EtcdCluster, m MemberPod) corev1.Container {
	own := podPolicy(c).DeepCopy()
	_, mounts := tlsVolumes(c)
	container := corev1.Container{
		Name:            ContainerName,
		Image:           Image(c),
		ImagePullPolicy: own.ImagePullPolicy,
		Command:         command(c, m),
		Env:             slices.Concat(tlsEnv(c), literalEnv(own.EtcdEnv), initialEnv()),
		Resources:       own.Resources,
		Ports: []corev1.ContainerPort{
			{Name: "server", ContainerPort: PeerPort, Protocol: corev1.ProtocolTCP},
			{Name: "client", ContainerPort: ClientPort, Protocol: corev1.ProtocolTCP},
		},
		VolumeMounts:    append([]corev1.VolumeMount{{Name: dataVolume, MountPath: dataMount}}, mounts...),
		SecurityContext: containerSecurityContext(own),
		Lifecycle:       drainHook(c),
	}
	if container.ImagePullPolicy == "" {
		container.ImagePullPolicy = corev1.PullIfNotPresent
	}
	if featuresOf(Version(c)).metricsListener {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: MetricsPort, Protocol: corev1.ProtocolTCP})
	}
	addProbes(c, &container)
	return container
}

// data returns the volume with the member's data: its PVC, or a directory that
// goes with the pod.
func data(c *v1beta2.EtcdCluster, member string) corev1.Volume {
	v := corev1.Volume{Name: dataVolume}
	if podPolicy(c).PersistentVolumeClaimSpec != nil {
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: member}
	} else {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return v
}

func role(learner bool) string {
	if learner {
		return RoleLearner
	}
	return RoleVoter
}

// WithRole returns live with the label of its role, RoleVoter, RoleLearner or
// RoleDraining, and whether that is a change. The label may say voter only after the
// promotion, and a budget for one voter more must stand before it: then at no moment
// the budget lets the quorum go.
func WithRole(live *corev1.Pod, role string) (*corev1.Pod, bool) {
	if live.Labels[LabelRole] == role {
		return live, false
	}
	pod := live.DeepCopy()
	pod.Labels = merged(pod.Labels, map[string]string{LabelRole: role})
	return pod, true
}

// WithVersion returns live with the image of the version that c asks for, and whether
// that is a change. An image that something else has set is replaced, too. Only what Kubernetes lets change in a pod does: the container
// restarts in place with its data, its arguments and its probes. NeedsNewPod says whether
// that version may run there.
func WithVersion(c *v1beta2.EtcdCluster, live *corev1.Pod) (*corev1.Pod, bool) {
	pod := live.DeepCopy()
	sets := RequestedImage(live) != Image(c) || ImageStateOf(live) != ImageAdmitted
	pod.Annotations = merged(merged(pod.Annotations, versionAnnotations(c)), map[string]string{AnnotationVersion: Version(c), AnnotationImage: Image(c)})
	if ctr := etcdContainer(pod); sets && ctr.Name != "" {
		supersede(pod, ctr.Image)
		ctr.Image = Image(c)
		delete(pod.Annotations, AnnotationImageRegistry)
		noteRequested(pod)
	}
	return pod, sets || live.Annotations[AnnotationVersion] != Version(c)
}
