// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Labels of everything that belongs to a cluster. The first three are what users'
// selectors and network policies have always named.
const (
	LabelApp = "app"
	// LabelCluster is the name of the EtcdCluster to which the object belongs.
	LabelCluster = "etcd_cluster"
	// LabelMember is the name of the member to which the pod or the PVC belongs.
	LabelMember = "etcd_node"
	// LabelRole says what the member of a pod is to its cluster. The disruption budget
	// counts those that vote; the client Service leads to voters that stay.
	// etcd's own readiness tells a learner from a voter only in newer releases.
	LabelRole = "etcd_role"

	// AppName is the value of LabelApp.
	AppName = "etcd"

	// RoleVoter, RoleLearner and RoleDraining are the values of LabelRole. A voter drains its
	// clients before it is removed, restarts or is defragmented.
	RoleVoter    = "voter"
	RoleLearner  = "learner"
	RoleDraining = "leaving"
)

// Annotations that the controller owns.
const (
	// AnnotationVersion on a pod is the version of etcd that it was made for.
	AnnotationVersion = "etcd.version"
	// AnnotationVersionBefore on a PVC is the version of etcd that its data is of, from when the pod is deleted for
	// another version until the next pod is created. On that pod it says the same: no earlier pod had its version.
	AnnotationVersionBefore = "etcd.database.coreos.com/version-before"
	// AnnotationImage on a pod is the image that was requested for its etcd.
	AnnotationImage = "etcd.database.coreos.com/image"
	// AnnotationInitialCluster on a pod tells its etcd the members of the cluster, for the case
	// that it has no data.
	AnnotationInitialCluster = "etcd.database.coreos.com/initial-cluster"
	// AnnotationInitialState on a pod tells its etcd whether the cluster exists or is new, for the
	// case that it has no data.
	AnnotationInitialState = "etcd.database.coreos.com/initial-cluster-state"
	// AnnotationTemplate on a pod is the TemplateHash that it was made for.
	AnnotationTemplate = "etcd.database.coreos.com/template"
	// AnnotationRestart on an EtcdCluster asks for a restart of every member when its
	// value changes. On a pod it is the request after which the pod was made.
	AnnotationRestart = "etcd.database.coreos.com/restarted-at"
	// AnnotationCancelOperation on an EtcdCluster is the ID of the operation, or of the recovery from a lost quorum, in its
	// status to cancel.
	AnnotationCancelOperation = "etcd.database.coreos.com/cancel-operation"
	// AnnotationSuperseded on a pod is the ID of the container that runs an image
	// that is no longer desired, and that image: "<id> <image>".
	AnnotationSuperseded = "etcd.database.coreos.com/superseded-container"
	// AnnotationClusterUID is the UID of the EtcdCluster that an object belongs to. PVCs,
	// Secrets and the record have no owner reference to tell it by.
	AnnotationClusterUID = "etcd.database.coreos.com/cluster-uid"
)

// Labels returns the labels that every object of the cluster carries.
func Labels(clusterName string) map[string]string {
	return map[string]string{LabelApp: AppName, LabelCluster: clusterName}
}

// Selector selects the pods of the cluster, in the form that the status shows.
func Selector(clusterName string) string {
	return labels.SelectorFromSet(Labels(clusterName)).String()
}

// Owner returns the reference that makes c the controller of an object. It does not
// block the deletion of c: members may outlive it for the moment that garbage
// collection takes, and no right on finalizers is needed.
func Owner(c *v1beta2.EtcdCluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         v1beta2.SchemeGroupVersion.String(),
		Kind:               "EtcdCluster",
		Name:               c.Name,
		UID:                c.UID,
		Controller:         ptr.To(true),
		BlockOwnerDeletion: ptr.To(false),
	}
}

// Owns is true if obj belongs to exactly this c and not to an earlier or later
// cluster of the same name. An object without any controller counts if it carries
// the UID in an annotation.
func Owns(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	if c.UID == "" {
		return false
	}
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return ref.UID == c.UID
	}
	return obj.GetAnnotations()[AnnotationClusterUID] == string(c.UID)
}

// HasOtherOwner is true for an object that names another cluster as its owner. An object that was released
// names none.
func HasOtherOwner(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return ref.UID != c.UID
	}
	uid := obj.GetAnnotations()[AnnotationClusterUID]
	return uid != "" && uid != string(c.UID)
}

// objectMeta returns the metadata of a new object of the cluster: the user's labels and
// annotations, then ours, which win. Every new object has an owner reference, so that
// garbage collection takes what a controller with an outdated cache creates for a cluster
// that no longer exists; see MarkAlone.
func objectMeta(c *v1beta2.EtcdCluster, name string, userLabels, userAnnotations map[string]string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name:        name,
		Namespace:   c.Namespace,
		Labels:      merged(userLabels, Labels(c.Name)),
		Annotations: merged(userAnnotations, nil),
	}
	MarkOwned(c, &meta)
	return meta
}

// merged returns a new map, never nil, with the entries of base overridden by over.
func merged(base, over map[string]string) map[string]string {
	out := make(map[string]string, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

// podPolicy returns the policy of c, never nil.
func podPolicy(c *v1beta2.EtcdCluster) *v1beta2.PodPolicy {
	if c.Spec.Pod != nil {
		return c.Spec.Pod
	}
	return &v1beta2.PodPolicy{}
}
