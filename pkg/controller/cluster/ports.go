// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// Cache reads what the informers hold; it may lag behind. Objects that it returns
// are shared and must not be changed. A missing object is a NotFound error of
// k8s.io/apimachinery/pkg/api/errors.
type Cache interface {
	Cluster(namespace, name string) (*v1beta2.EtcdCluster, error)
	Restore(namespace, name string) (*v1beta2.EtcdRestore, error)
	Service(namespace, name string) (*corev1.Service, error)
	ConfigMap(namespace, name string) (*corev1.ConfigMap, error)
	PodDisruptionBudget(namespace, name string) (*policyv1.PodDisruptionBudget, error)
	// Pods lists the pods that carry the labels of the cluster called name, whatever their
	// owner is.
	Pods(namespace, name string) ([]*corev1.Pod, error)
	// Pod and PVC find what carries no label of the cluster, such as the recovery member.
	Pod(namespace, name string) (*corev1.Pod, error)
	PVC(namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// HiddenPods and HiddenPVCs list those of recovery members of the cluster called name that
	// were not published yet.
	HiddenPods(namespace, name string) ([]*corev1.Pod, error)
	HiddenPVCs(namespace, name string) ([]*corev1.PersistentVolumeClaim, error)
	// PVCs lists the PVCs that carry the labels of the cluster called name.
	PVCs(namespace, name string) ([]*corev1.PersistentVolumeClaim, error)
	// PodsInEndpoints returns the UIDs of the pods in the ready endpoints of a Service.
	PodsInEndpoints(namespace, service string) (map[types.UID]bool, error)
	// IsCordoned is true for a node that is cordoned. It is false for every node if the
	// controller may not watch nodes.
	IsCordoned(node string) bool
}

// Objects reads and writes the live API. A read here is never older than the moment
// at which it is made.
type Objects interface {
	GetCluster(ctx context.Context, namespace, name string) (*v1beta2.EtcdCluster, error)
	// ListClusters lists the namespaces, names and UIDs of the EtcdClusters of a namespace, or of all namespaces if it is
	// empty. It is called only while PVCs of an earlier cluster are found.
	ListClusters(ctx context.Context, namespace string) ([]v1beta2.EtcdCluster, error)
	UpdateClusterStatus(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error)

	// PatchFinalizers writes the finalizers of cluster, and nothing else of it, if nothing
	// has changed since it was read.
	PatchFinalizers(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error)

	// ForgetRestore removes the annotations of an EtcdRestore from cluster, and changes nothing else of it, if
	// nothing has changed since it was read.
	ForgetRestore(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error)

	GetService(ctx context.Context, namespace, name string) (*corev1.Service, error)
	CreateService(ctx context.Context, service *corev1.Service) (*corev1.Service, error)
	UpdateService(ctx context.Context, service *corev1.Service) (*corev1.Service, error)

	GetConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	CreateConfigMap(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error)
	UpdateConfigMap(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error)

	// GetSecret reads one secret of a cluster's namespace by its name. Secrets are never
	// listed or watched: that would be a right to all of them.
	GetSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	CreateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error)
	UpdateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error)
	// DeleteSecret is called only for the Secret of a client that was removed.
	DeleteSecret(ctx context.Context, namespace, name string, only metav1.Preconditions) error

	GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// ListPods lists the pods that carry the labels of the cluster called name.
	ListPods(ctx context.Context, namespace, name string) ([]corev1.Pod, error)
	// ListControlledPods lists the pods that an EtcdCluster controls, whatever labels they carry. It reads all
	// pods of the namespace, and is called only for recoveries and restores.
	ListControlledPods(ctx context.Context, c *v1beta2.EtcdCluster) ([]corev1.Pod, error)
	CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
	UpdatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
	DeletePod(ctx context.Context, namespace, name string, only metav1.Preconditions) error
	// StopPod deletes a pod as DeletePod does, and gives it only a second to end by itself.
	StopPod(ctx context.Context, namespace, name string, only metav1.Preconditions) error

	// GetNode is called only for the node of a pod that was not ready for minutes.
	GetNode(ctx context.Context, name string) (*corev1.Node, error)
	// NodeReports returns the version of the last report of the kubelet of each node. A node whose
	// version changes has reported in between. One that never reports is absent.
	NodeReports(ctx context.Context, nodes []string) (map[string]string, error)

	GetPVC(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// ListPVCs lists the PVCs that carry the labels of the cluster called name.
	ListPVCs(ctx context.Context, namespace, name string) ([]corev1.PersistentVolumeClaim, error)
	// ListNamespacePVCs lists every PVC of a namespace, whatever labels it carries.
	ListNamespacePVCs(ctx context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error)
	CreatePVC(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error)
	UpdatePVC(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error)
	DeletePVC(ctx context.Context, namespace, name string, only metav1.Preconditions) error

	// CreateRestore creates the EtcdRestore that restores the last backup of a lost cluster.
	CreateRestore(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error)

	GetPodDisruptionBudget(ctx context.Context, namespace, name string) (*policyv1.PodDisruptionBudget, error)
	CreatePodDisruptionBudget(ctx context.Context, pdb *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error)
	UpdatePodDisruptionBudget(ctx context.Context, pdb *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error)
	DeletePodDisruptionBudget(ctx context.Context, namespace, name string, only metav1.Preconditions) error
}

// Etcd talks to the members of one cluster. The endpoints of a call may be unresponsive;
// the context bounds the call.
type Etcd interface {
	// Members reads the member list through a quorum.
	Members(ctx context.Context, target etcd.Target) (etcd.Membership, error)
	// OwnMembers asks one member for its own list, which may be older than that of the others.
	OwnMembers(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) (etcd.Membership, error)
	// Statuses asks every endpoint for itself, at the same time; the result has an
	// entry for each, by its name.
	Statuses(ctx context.Context, target etcd.Target) map[string]etcd.StatusResult
	// FailedReads asks every endpoint, a voter each, for a linearizable read. It returns why
	// one did not end, by the name of the endpoint.
	FailedReads(ctx context.Context, target etcd.Target) map[string]error
	// ClusterVersion returns the cluster version that one member knows. The error is
	// etcd.ErrVersionUndecided as long as it knows none.
	ClusterVersion(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) (string, error)
	// Shown returns what the members show to others on their two ports.
	Shown(ctx context.Context, target etcd.Target) map[string]etcd.Shown
	AddLearner(ctx context.Context, target etcd.Target, peerURL string) error
	AddVoter(ctx context.Context, target etcd.Target, peerURL string) error
	Promote(ctx context.Context, target etcd.Target, id uint64) error
	Remove(ctx context.Context, target etcd.Target, id uint64) error
	// MoveLeader must be given the leader's own endpoint.
	MoveLeader(ctx context.Context, leader etcd.Target, to uint64) error
	// ProveWrite returns nil if a write was committed and applied. It leaves nothing
	// behind that clients can see.
	ProveWrite(ctx context.Context, target etcd.Target) error
	// ProveFirstWrite is the same for a recovery member. It disarms the alarms that came with the data, of members that
	// the new cluster never had.
	ProveFirstWrite(ctx context.Context, target etcd.Target) error
	// Pad appends up to n entries to the log that change nothing; ctx bounds how many.
	Pad(ctx context.Context, target etcd.Target, n int) error
	// Defragment has one member rewrite its database, and returns when it has.
	Defragment(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) error
	// DisarmNoSpace disarms the alarm that a member has raised about its full database. It returns
	// false if there was none.
	DisarmNoSpace(ctx context.Context, target etcd.Target, id uint64) (bool, error)
}

// CertManager reads and writes the Certificates that cert-manager issues.
type CertManager interface {
	// Served is true if the API of cert-manager exists. The result may be some minutes old.
	Served() (bool, error)
	Get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
	Create(ctx context.Context, certificate *unstructured.Unstructured) (*unstructured.Unstructured, error)
	Update(ctx context.Context, certificate *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// Background runs tasks that take longer than a reconcile may, one for each cluster at a
// time. It remembers the last task of each cluster until the process ends.
type Background interface {
	// Start runs a task unless one of the cluster runs, and puts the key back on the
	// queue when it has ended.
	Start(key types.NamespacedName, id string, task func(context.Context) error)
	// Lack says what keeps Start from running a task of the cluster, and puts the key back on the queue when that
	// has ended.
	Lack(key types.NamespacedName) share.Lack
	// Last returns the last task of the cluster, and whether and how it has ended.
	Last(key types.NamespacedName) (id string, done bool, err error)
	// Forget drops the last task of the cluster.
	Forget(key types.NamespacedName)
}

// Ports that all reconcilers have.
type (
	// Gate knows which of the controller's own writes the cache has not shown yet.
	Gate = reconcile.Gate
	// Recorder records events about an object.
	Recorder = reconcile.Recorder
)

// Waker calls back when an endpoint starts to serve, or stops.
type Waker interface {
	// Await puts the key back on the queue as soon as the endpoint serves.
	Await(key types.NamespacedName, target etcd.Target, endpoint etcd.Endpoint)
	// AwaitEnd puts the key back on the queue as soon as the endpoint no longer serves.
	AwaitEnd(key types.NamespacedName, target etcd.Target, endpoint etcd.Endpoint)
}

// Launchers reaches the programs that wait in prepared pods.
type Launchers interface {
	// Key is what a prepared pod is given, so that its launcher believes what Tell says.
	Key() string
	// Tell tells the launcher of an admitted pod its initial cluster, as the pod says it in the API. It
	// returns at once, and nothing depends on it: the kubelet says the same up to a second later.
	Tell(ctx context.Context, pod *corev1.Pod, initialCluster string)
}
