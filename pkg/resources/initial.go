// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Annotations of a pod say what etcd does with an empty directory. They reach etcd as
// variables each time its container starts; flags cannot change in a living pod. A member
// that has its data must never start without the data again. It would vote without the
// writes that it has acknowledged, and the bootstrap member would start a second cluster of
// the same ID.
const (
	envInitialCluster = "ETCD_INITIAL_CLUSTER"
	envInitialState   = "ETCD_INITIAL_CLUSTER_STATE"
	stateNew          = "new"
	stateExisting     = "existing"
)

// initialEnv comes behind the variables of the user: the last one of a name holds.
func initialEnv() []corev1.EnvVar {
	return []corev1.EnvVar{
		fromAnnotation(envInitialCluster, AnnotationInitialCluster),
		fromAnnotation(envInitialState, AnnotationInitialState),
	}
}

// annotationPathPrefix and annotationPathSuffix enclose the name of an annotation in a field path.
const annotationPathPrefix, annotationPathSuffix = "metadata.annotations['", "']"

func annotationField(annotation string) *corev1.ObjectFieldSelector {
	return &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: annotationPathPrefix + annotation + annotationPathSuffix}
}

// fromAnnotation is a variable that has the value of an annotation each time the container starts.
func fromAnnotation(name, annotation string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: annotationField(annotation)}}
}

// initialAnnotations are those of a new pod.
func initialAnnotations(c *v1beta2.EtcdCluster, m MemberPod) map[string]string {
	if m.Joined {
		return joined(c, m.Name)
	}
	state := stateExisting
	if m.Bootstrap {
		state = stateNew
	}
	return map[string]string{AnnotationInitialCluster: initialCluster(m.InitialCluster), AnnotationInitialState: state}
}

// joined names a member alone as the cluster to join: on an empty directory etcd finds no
// member to query, and ends.
func joined(c *v1beta2.EtcdCluster, member string) map[string]string {
	return map[string]string{
		AnnotationInitialCluster: initialCluster([]Peer{{Name: member, URL: PeerURL(c, member)}}),
		AnnotationInitialState:   stateExisting,
	}
}

// Joined returns live so that etcd in it starts only on the data that it has, and whether
// that is a change. A pod of an earlier release, which has flags for it, stays as it is.
func Joined(c *v1beta2.EtcdCluster, live *corev1.Pod) (*corev1.Pod, bool) {
	if !MayFill(live) {
		return live, false
	}
	pod := live.DeepCopy()
	pod.Annotations = merged(pod.Annotations, joined(c, pod.Name))
	return pod, true
}

// AdmittedJoined returns the prepared pod live as one whose member has joined before, and whether that is a
// change: etcd in it starts only on the data that it has.
func AdmittedJoined(c *v1beta2.EtcdCluster, live *corev1.Pod) (*corev1.Pod, bool) {
	if !IsPrepared(live.Annotations) {
		return live, false
	}
	pod := live.DeepCopy()
	delete(pod.Annotations, AnnotationMembership)
	pod.Annotations = merged(pod.Annotations, joined(c, pod.Name))
	return pod, true
}

// MayFill is true if etcd in a pod begins again on an empty directory, and Joined can end
// that.
func MayFill(pod *corev1.Pod) bool {
	cluster, found := pod.Annotations[AnnotationInitialCluster]
	if !found {
		return !IsPrepared(pod.Annotations) && readsInitialCluster(pod) // the annotation was removed
	}
	return pod.Annotations[AnnotationInitialState] != stateExisting || strings.Contains(cluster, ",")
}

// readsInitialCluster is true for a pod whose etcd or launcher reads the initial cluster from the annotation.
// Without the annotation the launcher waits for it.
func readsInitialCluster(pod *corev1.Pod) bool {
	return slices.ContainsFunc(etcdContainer(pod).Env, func(e corev1.EnvVar) bool { return e.Name == envInitialCluster && e.ValueFrom != nil })
}

// InitialMembers returns the names of the members that the annotations of a pod give to etcd.
func InitialMembers(pod *corev1.Pod) []string {
	var names []string
	list, found := pod.Annotations[AnnotationInitialCluster]
	for i := range pod.Spec.Containers {
		for _, arg := range pod.Spec.Containers[i].Command {
			if flag, isFlag := strings.CutPrefix(arg, "--initial-cluster="); isFlag { // of an earlier release
				list, found = flag, true
			}
		}
	}
	if !found {
		return nil
	}
	for entry := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names) // a member with several peer URLs stands there several times
}
