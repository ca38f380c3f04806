// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Observed is everything that a decision is made from. Pods and PVCs must have been read
// before etcd. A pod is admitted only after its member was added, so a pod in Pods that is
// not in the member list belongs to no member.
type Observed struct {
	// Now is the one time of this observation.
	Now time.Time
	// Cluster is the object, with the status that was last written.
	Cluster *v1beta2.EtcdCluster
	// NewName is a member name that was never used.
	NewName string
	// BootstrapName is the name of the only member that may start the cluster.
	BootstrapName string
	// Template is the hash of what is declared about pods now.
	Template string

	Record    Record
	Witnesses Witnesses

	PeerService   ObjectState
	ClientService ObjectState
	// ClientServiceFixed names what of its template cannot change while the client Service
	// exists; empty if nothing differs that cannot change.
	ClientServiceFixed  string
	PodDisruptionBudget PodDisruptionBudget
	// RecoveryBudget rejects evictions of a recovery member.
	RecoveryBudget ObjectState

	// Unlabeled are objects of this cluster whose labels do not name it, or do not say whether it
	// is protected.
	Unlabeled []Object

	// Found are objects that the cluster does not own, and that an earlier cluster of its name may have
	// left: PVCs, pods, Secrets, Services, the record and the budget.
	Found []Found

	Pods []Pod
	PVCs []PVC
	// Prepared and PreparedPVCs are pods and PVCs of this cluster that no member has
	// used yet. They are not in Pods and PVCs: for every rule about members they do not
	// exist. TakeUpStarted moves those of members that have started.
	Prepared     []Pod
	PreparedPVCs []PVC
	// Certificates that the cluster needs, in a fixed order; none without spec.TLS.
	Certificates []certificates.Certificate
	// Clients are those of spec.clients, in their order, then those that were removed and whose
	// Secrets the status still lists.
	Clients []Client
	// CA is set for a cluster whose certificates are issued here.
	CA *certificates.CA
	// CertManager is set for a cluster whose certificates cert-manager issues.
	CertManager *certificates.CertManager
	// Trust names the set of CAs that members must trust; empty if that is not known.
	Trust string
	// CanAuthenticate is true if the controller has a certificate that members accept.
	CanAuthenticate bool

	Etcd           Etcd
	RecoveryMember RecoveryMember
	// Fenced are the PVCs of old members that the cutover under way has taken the label from. They are not in PVCs.
	Fenced []string
	// RecoveryRestore is the status of the EtcdRestore that has asked for the recovery under way; nil if there is none.
	RecoveryRestore *v1beta2.RestoreStatus
	// RecoveryRestoreOver is true if that EtcdRestore no longer exists, or has ended.
	RecoveryRestoreOver bool
	// LossRestore is the status of the EtcdRestore that LossRestoreName names; nil if there is none.
	LossRestore *v1beta2.RestoreStatus
	// AwaitedRestore is the EtcdRestore whose data the cluster starts with, by its annotation; nil if it does not
	// exist.
	AwaitedRestore *v1beta2.EtcdRestore
	// Task must have been read before etcd: the response of a member then shows its state
	// after the task.
	Task Task
}

// ObjectState compares an object that the controller owns with its desired state.
type ObjectState int

// Values of ObjectState.
const (
	// Missing: there is no such object.
	Missing ObjectState = iota
	// Current: the object exists and is as desired.
	Current
	// Drifted: the object exists, and a field that the controller owns differs.
	Drifted
	// NotOwned: an object of that name exists and is not owned by the cluster.
	NotOwned
)

// Record is the record of the cluster. Of one that is not owned only the state is observed.
type Record struct {
	State ObjectState
	// Undeclared is true if it does not hold what the EtcdCluster declares now.
	Undeclared bool
	resources.Record
}

// Witnesses is what pods, PVCs and the peer Service repeat of the record, for the case that it is lost.
type Witnesses struct {
	// Recoveries are the IDs of recoveries that have begun, the oldest first.
	Recoveries []string
	// RecoveryMembers are those that exist, in the order of their names.
	RecoveryMembers []RecoveryWitness
}

// RecoveryWitness is a pod or a PVC that was created for a recovery.
type RecoveryWitness struct {
	Recovery v1beta2.RecoveryStatus
	// Hidden is true until the recovery member is published to clients.
	Hidden bool
}

// RecoveryMember is the first member of a recovery under way.
type RecoveryMember struct {
	// Pod is nil if there is none.
	Pod *Pod
	// Hidden is true while the pod or its PVC is not behind the Services.
	Hidden bool
	// HasPVC is true if its PVC exists and is not being deleted. PVCDeleted is true if its deletion was requested.
	HasPVC, PVCDeleted bool
	// Unfilled is true if its volume was lost after it had served, so that each pod for it fills the new one. LacksPVC
	// is true if its own PVC does not exist: the pod never runs.
	Unfilled, LacksPVC bool
	// FailsToFill is true if the backup cannot be read or used, and the agent has found nothing on the volume.
	FailsToFill bool
	// MountsSource is true if its pod mounts the PVC that the recovery reads.
	MountsSource bool
	// Serves is true if it responds and leads.
	Serves bool
	// ClusterID in its response.
	ClusterID uint64
}

// PodDisruptionBudget is the budget that guards the voters.
type PodDisruptionBudget struct {
	State ObjectState
	// MinAvailable of the live object.
	MinAvailable int
}

// Pod is a pod that carries the labels of the cluster.
type Pod struct {
	Name string
	UID  string
	Node string
	// Cordoned is true if its node takes no more pods that are like it.
	Cordoned bool
	// Owned is true if the controller reference has the UID of the cluster.
	Owned bool
	// Terminating pods have a requested deletion and do not come back.
	Terminating bool
	// DeletionRequested is when the deletion of a terminating pod was requested, and EndsBy
	// when its node must have ended it.
	DeletionRequested, EndsBy time.Time
	// Finished pods failed or completed as a whole (evicted, node shut down).
	Finished bool
	// Running is true while the etcd container runs, Started is since when, and RestartCount is how
	// often one has ended.
	Running      bool
	Started      time.Time
	RestartCount int
	// Ready is the pod's own condition; false while Restarting.
	Ready bool
	// Restarting is true while the pod runs, or seems to run, the container of an image that
	// was changed since.
	Restarting bool
	// Unstarted is true if the image of the pod was changed and no container was created from
	// the new image yet. It also is true for the first pod of a version without a container; RanBefore is the version that
	// its data is of, if the pod says one.
	Unstarted bool
	RanBefore string
	// Role is what the label of the pod says that its member is.
	Role PodRole
	// InEndpoints is true while the client Service leads to the pod.
	InEndpoints bool
	// Version of etcd that the pod was made for.
	Version string
	// Outdated is true if the image that the controller requested for the pod is not the
	// desired image. An admission policy may have changed the image of the pod; that makes
	// no difference.
	Outdated bool
	// ImageName is the image that the pod has, and Image says where that comes from.
	ImageName string
	Image     resources.ImageState
	// PutBack names the round of the record in which the image was requested last, by a new pod or in place.
	PutBack string
	// FromPolicy is true if an admission policy has changed the requested image. It may do so for new
	// pods only. See resources.IsImageFromPolicy.
	FromPolicy bool
	// OtherInitImage is true if an init container that has not ended has another image than a new pod would request.
	// See resources.HasOtherInitImage.
	OtherInitImage bool
	// NeedsNewPod is true if another version or image is desired that must not run in this pod: a
	// new pod has other flags, variables or probes. See resources.NeedsNewPod.
	NeedsNewPod bool
	// Template is the hash of the declaration from which the pod was made; empty if unknown.
	Template string
	// Restart names the request to restart after which it was made.
	Restart string
	// Fills is true if the pod has what fills its data directory in a recovery: init containers, Secrets, a cloud
	// identity. A member that serves does not need these.
	Fills bool
	// Peers are the names of the members that the pod was started to join, its own
	// among them; nil if that is not known.
	Peers []string
	// MayFill is true if etcd in the pod would start without data on an empty directory,
	// which is for members that have not joined yet.
	MayFill bool
	// Unadmitted is true if its annotation says that no member has used it, although its member has started.
	Unadmitted bool
	// Trust names the set of CAs that was trusted when the pod was created; empty if that
	// is not known.
	Trust string
	// PeerCAs names the CAs by which its member verifies other members since it started,
	// and Accepts is true if these verify the certificates that the other members show now.
	PeerCAs string
	Accepts bool
	// TrustsCA is true if the present CA of a cluster whose certificates are issued here is one
	// of those that its member read when it started.
	TrustsCA bool
	// TrustsPrevious is true if the CA that has cross-signed the present one is.
	TrustsPrevious bool
	// Certificates names those that the kubelet of the pod was last notified of, and
	// Refreshed is true if these are the present ones.
	Certificates string
	Refreshed    bool
	// Waiting says why the pod does not run, in the words of Kubernetes.
	Waiting string
	// Made is when the pod was made.
	Made time.Time
	// Quota is that with which etcd in the pod was started.
	Quota resources.Quota
	// Log says how much of its log etcd in the pod keeps.
	Log resources.LogOptions
	// NodeNotReady is true if its node is not ready, so that what Kubernetes says of the pod may be
	// old. NodeAbsent is true if the node does not exist, so that Kubernetes removes the pod soon. NodeNotReady is
	// observed only while the quorum counts as lost, and both before a recovery touches old members.
	NodeNotReady, NodeAbsent bool
	// NodeUnread is why its node could not be read, if NodeNotReady is true because of that.
	NodeUnread string
	// NodeReadySince is when its node became ready, by the clock of the node. It is observed before a recovery touches old
	// members; else it is zero.
	NodeReadySince time.Time
	// AwaySince is since when the pod cannot come back by itself: its node is not ready, no node
	// takes it, or its deletion does not end. It is zero if that is not so, or not known.
	// AwayWhy is the reason as text.
	AwaySince time.Time
	AwayWhy   string
}

// PodRole is the role in the label of a pod. The disruption budget counts voters and draining
// pods; clients are sent to voters only.
type PodRole string

// Values of PodRole.
const (
	PodVoter   PodRole = "voter"
	PodLearner PodRole = "learner"
	// PodDraining is a voter whose clients are sent elsewhere, because it is about to be
	// removed, to restart or to be defragmented.
	PodDraining PodRole = "leaving"
)

// PVC is a PersistentVolumeClaim that holds the data of one member.
type PVC struct {
	Name        string
	UID         string
	Owned       bool
	Terminating bool
	// Unadmitted is true if its annotation says that no member has used it, although its member has started.
	Unadmitted bool
	// HasOtherOwner is true if it names another cluster as its owner.
	HasOtherOwner bool
	// Bound is true once it has a volume. That may be tied to a node.
	Bound bool
	// Version of etcd that was last to run on it.
	Version string
	// Joining is true on the PVC of a second voter of an etcd without learners, until a quorum says that
	// it has started. No membership change begins before that is written down.
	Joining bool
	// TakenBackFrom is the UID of the earlier cluster from which it was taken back, until a quorum
	// lists its member; empty otherwise.
	TakenBackFrom string
	// Drifted is true if its marks are not those of the cluster, or its labels are not
	// those of its member.
	Drifted bool
	// Growth compares the size of the volume with the declared one, and GrowthWhy says what
	// is in the way.
	Growth    resources.Growth
	GrowthWhy string
	// OtherAttributes is true if its volumeAttributesClassName is not the declared one.
	OtherAttributes bool
}

// Task takes longer than a reconcile and runs beside it. A controller that restarts does not know
// it; the status holds its purpose.
type Task struct {
	// ID of the last task of this cluster; empty if there was none.
	ID string
	// Done is true when it has ended, Err says why it failed.
	Done bool
	Err  string
	// NoPlace says why a task could not start now, while an operation needs one; empty if it could.
	NoPlace string
}

// Client is what is known of the Secret of a client in spec.clients, or of a client that was
// removed from it.
type Client struct {
	// Certificate is that of the client. In a cluster without TLS it says only whether the
	// Secret exists and is owned by the cluster. State NotOwned also means a Secret
	// of another type.
	certificates.Certificate

	// Name of the client; empty if it was removed.
	Name string
	// UID of the Secret; empty if there is none.
	UID string
	// EntriesMatch is true if everything in the Secret but the certificate is as declared.
	EntriesMatch bool
}

// ObjectKind is the kind of an object of a cluster.
type ObjectKind string

// Values of ObjectKind.
const (
	KindPod     ObjectKind = "pod"
	KindPVC     ObjectKind = "PVC"
	KindService ObjectKind = "service"
	KindRecord  ObjectKind = "record"
	KindBudget  ObjectKind = "pod disruption budget"
	KindSecret  ObjectKind = "secret"
)

// Object names an object of a cluster.
type Object struct {
	Kind      ObjectKind
	Name, UID string
}

// Found is an object of an earlier cluster of the same name.
type Found struct {
	Object
	// ClusterUID is the UID of the cluster that it says it belonged to, or resources.UnknownClusterUID.
	ClusterUID string
	// ClusterNamespace is the namespace of that cluster as a PVC says it; empty if it does not.
	ClusterNamespace string
	// Source tells of that cluster. It is observed only for the PVCs of SoughtSource.
	Source Source
	// Controlled is true if it names an owner, so that garbage collection decides about it.
	Controlled bool
	// Labelled is true if it carries the labels of the cluster.
	Labelled bool
	// Protected is true if the admission policy protects it. The spec of this cluster decides nothing about that: only an
	// administrator lifts the protection.
	Protected bool
	// Made is when it was created. Version is the version of etcd that was last to run on a PVC.
	Made    time.Time
	Version string
	// MayFill is true for a pod in which etcd would start without data on an empty directory.
	MayFill bool
}

// Source tells of the EtcdCluster whose data is on a PVC that was found.
type Source struct {
	// Exists is its namespace and name if it still exists, or if another one of its name in its namespace may have its data.
	Exists string
	// Unchecked is true if the controller may not read whether it does. Beyond is true if it has not looked, because PVCs name more
	// than MostSources.
	Unchecked, Beyond bool
}
