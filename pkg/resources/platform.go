// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Platform is what an installation says about every pod that the controller creates. It
// changes finished pods and Jobs, so that what an EtcdCluster declares, and the hash of
// its template, do not depend on it: another setting never restarts a member that runs.
// The zero value leaves images, users and architectures as they are.
type Platform struct {
	// ImageRegistry is the registry, or the path in a registry, from which the images of
	// the default repositories are pulled, such as "registry.example.com/mirror".
	ImageRegistry string
	// ImagePullSecrets are names of Secrets in the namespace of each pod. They are added
	// to those that spec.pod.imagePullSecrets names.
	ImagePullSecrets []string
	// Architectures are the values of the node label kubernetes.io/arch that the images
	// are built for. If it is empty, pods run on nodes of every architecture.
	Architectures []string
	// UserOfNamespace leaves the user and the groups of pods out unless the EtcdCluster
	// sets them: the admission of the namespace fills them in.
	UserOfNamespace bool
}

const (
	// DefaultAgentRepository has an image of every release of this project.
	DefaultAgentRepository = "quay.io/etcd-operator/etcd-operator"

	// AnnotationImageRegistry on the pod of a member is the Platform.ImageRegistry that
	// its images are pulled from.
	AnnotationImageRegistry = "etcd.database.coreos.com/image-registry"

	// annotationSafeToEvict tells the cluster autoscaler whether it may evict a pod from
	// a node that it removes, and annotationDoNotDisrupt tells Karpenter that it may not.
	annotationSafeToEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"

	linux = "linux"
)

// Member applies the platform to the pod of a member of c, or of its recovery member.
func (p Platform) Member(c *v1beta2.EtcdCluster, pod *corev1.Pod) *corev1.Pod {
	setDefaultIn(&pod.Annotations, annotationSafeToEvict, safeToEvict(c))
	p.moveImages(c, pod)
	p.apply(&pod.Spec, podPolicy(c).SecurityContext)
	return pod
}

// Job applies the platform to the pod of a Job. An eviction costs the whole transfer, and
// a Job ends by itself: nodes wait for it.
func (p Platform) Job(job *batchv1.Job) *batchv1.Job {
	template := &job.Spec.Template
	setDefaultIn(&template.Annotations, annotationSafeToEvict, "false")
	setDefaultIn(&template.Annotations, annotationDoNotDisrupt, "true")
	for container := range containersOf(&template.Spec) {
		container.Image, _ = p.moved(container.Image)
	}
	p.apply(&template.Spec, nil)
	return job
}

// safeToEvict is the value of annotationSafeToEvict for a member of c. Without the
// annotation an autoscaler never removes the node of a member, because of the owner of its
// pod and of its local volumes. The disruption budget keeps the quorum; a member without a
// volume that is evicted is replaced before the next one may be. Where no budget does that,
// data that is lost with the pod is not evicted.
func safeToEvict(c *v1beta2.EtcdCluster) string {
	if c.Spec.PodDisruptionBudget == v1beta2.PodDisruptionBudgetDisabled && podPolicy(c).PersistentVolumeClaimSpec == nil {
		return "false"
	}
	return "true"
}

// apply changes what pods of members and of Jobs have in common. Own is the security
// context that a user has declared.
func (p Platform) apply(spec *corev1.PodSpec, own *corev1.PodSecurityContext) {
	for _, name := range p.ImagePullSecrets {
		secret := corev1.LocalObjectReference{Name: name}
		if !slices.Contains(spec.ImagePullSecrets, secret) {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, secret)
		}
	}
	setDefaultIn(&spec.NodeSelector, corev1.LabelOSStable, linux)
	p.selectArchitectures(spec)
	if sc := spec.SecurityContext; p.UserOfNamespace && sc != nil {
		if own == nil {
			own = &corev1.PodSecurityContext{}
		}
		sc.RunAsUser, sc.RunAsGroup, sc.FSGroup = own.RunAsUser, own.RunAsGroup, own.FSGroup
		sc.SupplementalGroups = slices.Clone(own.SupplementalGroups) // the user of the namespace has stored the backups there
	}
}

// selectArchitectures adds the architectures to every alternative of the required node
// affinity. Whatever a user says about architectures stays as it is.
func (p Platform) selectArchitectures(spec *corev1.PodSpec) {
	if _, selected := spec.NodeSelector[corev1.LabelArchStable]; selected || len(p.Architectures) == 0 {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	nodes := spec.Affinity.NodeAffinity
	built := corev1.NodeSelectorRequirement{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: slices.Clone(p.Architectures)}
	if nodes.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		nodes.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{built}}},
		}
		return
	}
	terms := nodes.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		term := &terms[i]
		// A term without any requirement matches no node, and would match some with one.
		empty := len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0
		if !empty && !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == corev1.LabelArchStable }) {
			term.MatchExpressions = append(term.MatchExpressions, built)
		}
	}
}

// moved returns where an image is pulled from, and whether that is ImageRegistry. It is for
// the images of the default repositories: any other repository was chosen by a person.
func (p Platform) moved(image string) (string, bool) {
	if p.ImageRegistry == "" {
		return image, false
	}
	for _, repository := range []string{v1beta2.DefaultRepository, DefaultAgentRepository} {
		version, is := strings.CutPrefix(image, repository)
		_, path, _ := strings.Cut(repository, "/")
		if is && (version == "" || version[0] == ':' || version[0] == '@') {
			return strings.TrimSuffix(p.ImageRegistry, "/") + "/" + path + version, true
		}
	}
	return image, false
}

// registryOf returns the value of AnnotationImageRegistry for a member of c, "" for none.
func (p Platform) registryOf(c *v1beta2.EtcdCluster) string {
	if _, moved := p.moved(Image(c)); moved {
		return p.ImageRegistry
	}
	return ""
}

// moveImages moves the images of the pod of a member of c, and notes where that of etcd is.
func (p Platform) moveImages(c *v1beta2.EtcdCluster, pod *corev1.Pod) {
	for container := range containersOf(&pod.Spec) {
		container.Image, _ = p.moved(desiredImage(pod, container.Image))
	}
	noteRequested(pod)
	delete(pod.Annotations, AnnotationImageRegistry)
	if registry := p.registryOf(c); registry != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationImageRegistry, registry)
	}
}

// desiredImage returns the image of a container of pod as it was before it was moved.
func desiredImage(pod *corev1.Pod, image string) string {
	registry := pod.Annotations[AnnotationImageRegistry]
	if registry == "" {
		return image
	}
	for _, repository := range []string{v1beta2.DefaultRepository, DefaultAgentRepository} {
		_, path, _ := strings.Cut(repository, "/")
		if version, is := strings.CutPrefix(image, strings.TrimSuffix(registry, "/")+"/"+path); is {
			return repository + version
		}
	}
	return image
}

// RequestedImage returns the image of etcd that the controller has requested for the pod of
// a member, as Image returns it, whichever registry it is pulled from. What the pod has may
// be another image: an admission policy may rewrite it, such as to the name of a mirror or to
// a digest. A pod of an earlier release does not say what was requested.
func RequestedImage(pod *corev1.Pod) string {
	if image := pod.Annotations[AnnotationImage]; image != "" {
		return image
	}
	return desiredImage(pod, imageOf(pod))
}

// IsMisplaced is true for the pod of a member of c whose image would be pulled from another
// registry if it was made now. That matters only while its container does not run.
func (p Platform) IsMisplaced(c *v1beta2.EtcdCluster, pod *corev1.Pod) bool {
	return pod.Annotations[AnnotationImageRegistry] != p.registryOf(c)
}

// WithVersion is WithVersion with the images where the platform has them.
func (p Platform) WithVersion(c *v1beta2.EtcdCluster, live *corev1.Pod) (*corev1.Pod, bool) {
	pod, changed := WithVersion(c, live)
	misplaced := p.IsMisplaced(c, live)
	p.moveImages(c, pod)
	if !changed && misplaced {
		supersede(pod, imageOf(live))
	}
	return pod, changed || misplaced
}

// containersOf iterates over all containers of a pod.
func containersOf(spec *corev1.PodSpec) func(yield func(*corev1.Container) bool) {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// setDefaultIn sets an entry that is not there.
func setDefaultIn(entries *map[string]string, key, value string) {
	if _, found := (*entries)[key]; found {
		return
	}
	if *entries == nil {
		*entries = map[string]string{}
	}
	(*entries)[key] = value
}
