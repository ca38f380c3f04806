// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// What the original etcd-operator puts on its objects and into its pods.
const (
	// OriginalClusterLabel is on pods, PVCs and Services; its value is the name of the cluster.
	OriginalClusterLabel = "etcd_cluster"
	originalContainer    = "etcd"
	originalTLSDir       = "/etc/etcdtls/operator/etcd-tls"
)

// OriginalResources are the resources whose CustomResourceDefinitions the original etcd-operator
// has, in the order in which they are deleted.
var OriginalResources = []string{"etcdbackups", "etcdrestores", "etcdclusters"}

// originalPrograms are the programs of the original etcd-operator.
var originalPrograms = []string{"etcd-operator", "etcd-backup-operator", "etcd-restore-operator"}

// ErrStatus means that the response of etcdctl cannot be used.
var ErrStatus = errors.New("the response of etcdctl cannot be used")

// DefinitionName returns the name of the CustomResourceDefinition of a resource.
func DefinitionName(resource string) string {
	return resource + "." + v1beta2.SchemeGroupVersion.Group
}

// IsOriginalOperator is true for a Deployment that runs a program of the original etcd-operator.
func IsOriginalOperator(d *appsv1.Deployment) bool {
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		if len(c.Command) > 0 && slices.Contains(originalPrograms, path.Base(c.Command[0])) {
			return true
		}
	}
	return false
}

// WithoutOwners returns the owner references of an object without those to objects of the
// group, and whether there are such.
func WithoutOwners(object metav1.Object) (kept []metav1.OwnerReference, owned bool) {
	kept = []metav1.OwnerReference{}
	for _, owner := range object.GetOwnerReferences() {
		if version, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && version.Group == v1beta2.SchemeGroupVersion.Group {
			owned = true
			continue
		}
		kept = append(kept, owner)
	}
	return kept, owned
}

// IsOfThisOperator is true for an object that this operator has created for an EtcdCluster: the
// original etcd-operator gives its objects no key of the group.
func IsOfThisOperator(object metav1.Object) bool {
	keys := slices.Concat(slices.Collect(maps.Keys(object.GetAnnotations())), slices.Collect(maps.Keys(object.GetLabels())), object.GetFinalizers())
	return slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, v1beta2.SchemeGroupVersion.Group+"/") })
}

// Exported returns an object as kubectl applies it: without its status and without what the API
// server and the original etcd-operator have added.
func Exported(object *unstructured.Unstructured) *unstructured.Unstructured {
	exported := object.DeepCopy()
	unstructured.RemoveNestedField(exported.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "finalizers", "ownerReferences",
		"deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(exported.Object, "metadata", field)
	}
	// kubectl apply writes this annotation again.
	annotations := exported.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	exported.SetAnnotations(annotations)
	return exported
}

// SourceFlags returns the flags of kubectl etcd migrate snapshot that name a cluster of the
// original etcd-operator by its client Service.
func SourceFlags(cluster *unstructured.Unstructured) string {
	host := cluster.GetName() + "-client." + cluster.GetNamespace() + ".svc:2379"
	secret, found, err := unstructured.NestedString(cluster.Object, "spec", "TLS", "static", "operatorSecret")
	if err != nil || !found || secret == "" {
		return "--endpoints=http://" + host
	}
	return "--endpoints=https://" + host + " --tls-secret=" + secret
}

// ReadyMember returns the first pod whose etcd responds to its readiness probe; nil if there is none.
func ReadyMember(pods []corev1.Pod, cluster string) *corev1.Pod {
	for i := range pods {
		p := &pods[i]
		if p.Labels[OriginalClusterLabel] != cluster || p.DeletionTimestamp != nil {
			continue
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return p
			}
		}
	}
	return nil
}

// StatusCommand prints the status of the etcd of a pod as JSON. Every image that the original
// etcd-operator runs has a shell and etcdctl, because its probes use both.
func StatusCommand(pod *corev1.Pod) []string {
	return []string{"/bin/sh", "-ec", etcdctl(pod) + " -w json endpoint status"}
}

// SnapshotCommand prints a snapshot of the etcd of a pod.
func SnapshotCommand(pod *corev1.Pod) []string {
	return []string{"/bin/sh", "-ec", `f=/tmp/kubectl-etcd-$$.db; trap 'rm -f "$f" "$f.part"' EXIT; ` + etcdctl(pod) + ` snapshot save "$f" >&2; cat "$f"`}
}

func etcdctl(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		secure := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == originalTLSDir })
		if c.Name == originalContainer && secure {
			return fmt.Sprintf("ETCDCTL_API=3 etcdctl --endpoints=https://localhost:2379 --cert=%[1]s/etcd-client.crt --key=%[1]s/etcd-client.key --cacert=%[1]s/etcd-client-ca.crt",
				originalTLSDir)
		}
	}
	return "ETCDCTL_API=3 etcdctl --endpoints=http://localhost:2379"
}

// MemberStatus is what a member says of itself.
type MemberStatus struct {
	Version  string
	Revision int64
}

// ReadStatus reads the output of StatusCommand.
func ReadStatus(output []byte) (*MemberStatus, error) {
	var endpoints []struct {
		Status struct {
			Header  struct{ Revision int64 }
			Version string
		}
	}
	if err := json.Unmarshal(output, &endpoints); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStatus, err)
	}
	if len(endpoints) != 1 || endpoints[0].Status.Version == "" {
		return nil, fmt.Errorf("%w: %s", ErrStatus, strings.TrimSpace(string(output)))
	}
	return &MemberStatus{Version: endpoints[0].Status.Version, Revision: endpoints[0].Status.Header.Revision}, nil
}
