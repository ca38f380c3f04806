// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Action is one side effect. The set is closed: the controller has one function
// for each.
type Action interface{ action() }

// AddFinalizer puts the finalizer on the cluster, before anything is created for it.
type AddFinalizer struct{}

// ForgetRestore removes the annotations of the EtcdRestore that made the cluster. The cluster has served, so what is
// exported of it starts anywhere.
type ForgetRestore struct{}

// LabelObject labels exactly the object with this UID with the cluster that it belongs to, and
// with whether the cluster is protected.
type LabelObject struct{ Object }

// FinishDeletion deletes the PVCs of a cluster that is being deleted, if its retention policy
// says so, and removes the finalizer.
type FinishDeletion struct{}

func (AddFinalizer) action()   {}
func (ForgetRestore) action()  {}
func (LabelObject) action()    {}
func (FinishDeletion) action() {}

// WriteRecord creates the record of the cluster, or completes it if it is still as it was
// observed. A record without a cluster ID names the bootstrap member: a live check confirms
// first that the cluster has never served.
type WriteRecord struct{ Record resources.Record }

// CreatePeerService creates the headless Service.
type CreatePeerService struct{}

// RepairPeerService restores the fields of the headless Service that the controller owns.
type RepairPeerService struct{}

// EnsureClientService creates or repairs the client Service.
type EnsureClientService struct{}

// EnsurePodDisruptionBudget creates or repairs the budget, so that evictions leave MinAvailable
// voters.
type EnsurePodDisruptionBudget struct{ MinAvailable int }

// DeletePodDisruptionBudget removes the budget.
type DeletePodDisruptionBudget struct{}

// GuardRecoveryMember creates or repairs the budget that rejects evictions of the recovery member.
type GuardRecoveryMember struct{}

// UnguardRecoveryMember deletes that budget.
type UnguardRecoveryMember struct{}

// RecordBootstrap writes etcd's cluster ID into the bootstrap record. From then on no
// bootstrap member is ever created again. Log, if it is not empty, is recorded with it.
type RecordBootstrap struct {
	ClusterID uint64
	Log       resources.LogRecord
}

// TakeBack makes exactly this object of an earlier cluster one of this cluster. Its name and its data stay. The
// live API must first confirm that the user requests it, and that the object still is of that cluster.
type TakeBack struct {
	Object
	ClusterUID string
}

// RecordDeclaration writes what the EtcdCluster declares into the record.
type RecordDeclaration struct{}

// CreateBootstrapPod creates the pod that starts the cluster. A live check comes first: the
// record names this member, and the cluster has never been bootstrapped. Version is the one
// that it starts with; empty for the declared one.
type CreateBootstrapPod struct{ Name, Version string }

// AddMember adds the member of the prepared pod with this UID to etcd. Admitted is true if
// the pod was admitted before.
type AddMember struct {
	Name, UID string
	As        JoinRole
	For       AddReason
	Admitted  bool
}

// JoinRole says what a member is when it joins.
type JoinRole string

// Values of JoinRole.
const (
	// JoinAsLearner: it has no vote before it is promoted.
	JoinAsLearner JoinRole = "Learner"
	// JoinAsVoter: it votes at once, because etcd is too old to know learners.
	JoinAsVoter JoinRole = "Voter"
)

// AddReason says why a member is added.
type AddReason string

// Values of AddReason.
const (
	// AddMissing: the cluster has fewer voters than the desired size.
	AddMissing AddReason = "Missing"
	// AddSuccessor: it is one more than the desired size, until the member that it replaces
	// is removed.
	AddSuccessor AddReason = "Successor"
)

// PreparePod makes the pod of a member that will be added to etcd when the pod waits for
// that, and before it the PVC if CreatePVC is true. Version is empty for the declared one.
type PreparePod struct {
	Name, Version string
	CreatePVC     bool
}

// AdmitPod lets etcd start in the prepared pod with this UID. Peers are the names of all
// members in etcd's list, its own among them. SecondVoter is true for the second voter of an etcd
// without learners.
type AdmitPod struct {
	Name, UID   string
	Peers       []string
	SecondVoter bool
}

// ConfirmPVC writes down that the member of exactly the PVC with this UID has started.
type ConfirmPVC struct{ Name, UID string }

// CreatePod creates the pod of a member that has a PVC. Peers are the names of all members in
// etcd's list, its own among them. Version is empty for the declared one. Joined is true if
// the PVC holds the data of the member. Joining is true if only the PVC says that it may hold none.
type CreatePod struct {
	Name    string
	Learner bool
	Peers   []string
	Version string
	Joined  bool
	Joining bool
}

// CreatePVC creates the PVC of the bootstrap member.
type CreatePVC struct{ Name string }

// PromoteMember makes a learner a voter. Needed is true if the quorum that it joins needs its
// vote: then its disk must take writes.
type PromoteMember struct {
	ID     uint64
	Name   string
	Needed bool
}

// RemoveMember takes a member out of etcd. Reason is for the event.
type RemoveMember struct {
	ID     uint64
	Name   string
	Reason RemoveReason
}

// RemoveReason says why a member is removed.
type RemoveReason string

// Values of RemoveReason.
const (
	RemoveScaleDown   RemoveReason = "ScaleDown"
	RemoveLost        RemoveReason = "Lost"
	RemoveSurplus     RemoveReason = "Surplus"
	RemovePeersDiffer RemoveReason = "PeersDiffer"
	RemoveReplaced    RemoveReason = "Replaced"
	// RemoveAway is for a member that does not respond and cannot come back by itself.
	RemoveAway RemoveReason = "Away"
	// RemoveOld is for a member of the etcd that the cluster takes over.
	RemoveOld RemoveReason = "Old"
	// RemoveCrashLooping is for a learner, or a voter that has not started, that ends again and again.
	RemoveCrashLooping RemoveReason = "CrashLooping"
	// RemoveStuck is for a learner that does not catch up with the others, or never responds.
	RemoveStuck RemoveReason = "Stuck"
)

// MoveLeader hands the leadership from one member to another.
type MoveLeader struct {
	From, To         uint64
	FromName, ToName string
}

// DeletePod deletes exactly the pod with this UID. Why says what must still be true for that.
type DeletePod struct {
	Name, UID string
	Why       PodDeletion
}

// PodDeletion says why a pod is deleted, and with that what is checked in the live API first.
type PodDeletion string

// Values of PodDeletion.
const (
	// DeleteObsolete: the member has no use for the pod. Nothing is checked but that the pod is
	// the observed one and owned by the cluster.
	DeleteObsolete PodDeletion = ""
	// DeleteBootstrapPod: the bootstrap member is created again. Only while the record says
	// that the cluster has never served, and only a pod that does not run.
	DeleteBootstrapPod PodDeletion = "Bootstrap"
	// DeleteHibernated: the desired size is 0. Only while it is, and while the PVC exists.
	DeleteHibernated PodDeletion = "Hibernated"
	// DeleteDistrusting: the member restarts together with the others, because they reject each
	// other's certificates. Only while the spec is as observed, and while the PVC exists.
	DeleteDistrusting PodDeletion = "Distrusting"
	// DeleteWithoutPVC: the pod waits for a PVC that does not exist. Only a pod that does not
	// run, and only without that PVC.
	DeleteWithoutPVC PodDeletion = "WithoutPVC"
	// DeleteDrained: the member still votes, and is removed as soon as it has ended the
	// requests of its clients. Only while the spec is as observed, and only while the other
	// voters that serve are here to stay.
	DeleteDrained PodDeletion = "Drained"
	// DeleteReplaced is DeleteDrained of a member that a new member has replaced.
	DeleteReplaced PodDeletion = "Replaced"
	// DeletePrepared: the pod was prepared for a member. Only one that no member has used.
	DeletePrepared PodDeletion = "Prepared"
	// DeleteUnpublished: the recovery member is created again. Only while the record is the observed
	// one: after it is published, its pod may hold what clients have written.
	DeleteUnpublished PodDeletion = "Unpublished"
)

// DeletePVC deletes exactly the PVC with this UID.
type DeletePVC struct {
	Name, UID string
	Why       PVCDeletion
}

// PVCDeletion says why a PVC is deleted, and with that what is checked first.
type PVCDeletion string

// Values of PVCDeletion.
const (
	// DeletePVCOfRemoved: its member was removed from etcd.
	DeletePVCOfRemoved PVCDeletion = ""
	// DeletePVCPrepared: it was created for a member that was never added. Only one that no
	// member has used.
	DeletePVCPrepared PVCDeletion = "Prepared"
)

// ReleasePVC removes the ownership from a PVC that is to be retained, so that the controller
// never deletes it later.
type ReleasePVC struct{ Name, UID string }

// RepairPVC gives exactly the PVC with this UID the owner and the labels that it should
// have, and requests a larger volume if one is declared.
type RepairPVC struct{ Name, UID string }

// RecordLog writes the record of what the log of etcd holds, if the record has not changed
// since the observation.
type RecordLog struct{ Log resources.LogRecord }

// RecordPutBack writes down that images are put back once more, if the record has not changed since the
// observation. It comes before the pods change.
type RecordPutBack struct{ PutBack resources.PutBackRecord }

// RecordCorruptVoters writes down how many voters there were when etcd said first that their data differs, or 0 once it
// no longer says so.
type RecordCorruptVoters struct{ Voters int }

// WriteRemoval makes etcd commit a write after the removal of an old member that left one voter, and forgets the member.
type WriteRemoval struct{}

// ForceSnapshot adds entries to the log of etcd that change nothing, so that members take a
// raft snapshot behind the entries before.
type ForceSnapshot struct{ Entries int }

// UpgradePod gives a pod the image of the desired version; its container restarts in place
// with its data.
type UpgradePod struct {
	Name, UID, Version string
	Mode               RestartMode
}

// RecreatePod deletes the pod of a member that has a PVC, so that the pod is created again as
// it is declared now, with this version.
type RecreatePod struct {
	Name, UID, Version string
	Mode               RestartMode
}

// RestartMode says which containers may be restarted, and at which cost.
type RestartMode string

// Values of RestartMode.
const (
	// RestartRolling: the other voters are a quorum meanwhile.
	RestartRolling RestartMode = ""
	// RestartWithOutage: the other voters are no quorum meanwhile, and cannot be one.
	RestartWithOutage RestartMode = "Outage"
	// RestartIdle: only a container that does not run.
	RestartIdle RestartMode = "Idle"
	// RestartUnresponsive: only a member that does not respond. Kubernetes reports which voters are ready.
	RestartUnresponsive RestartMode = "Unresponsive"
)

// FindMember looks in the live API for the pod and the PVC of a member that seem to be
// missing. If they have only lost their labels, they get them back.
type FindMember struct{ Name string }

// LabelPod writes the role of a member on its pod, and the template of the pod and the image that was
// admitted if the pod does not say them. Joined is true for a voter that has its data and must never start without it.
// Admit is true for a started member whose pod says that it waits for its membership. It waits no longer, and etcd
// starts in it only on its data.
type LabelPod struct {
	Name, UID string
	Role      PodRole
	Joined    bool
	Admit     bool
}

// Defragment has a member rewrite its database. The time that this takes grows with the
// database, so it runs as a task beside the reconciles.
type Defragment struct{ Name, Task string }

// DisarmNoSpace disarms the alarm NOSPACE that the member with this ID has raised.
type DisarmNoSpace struct{ ID uint64 }

func (Defragment) action()                {}
func (DisarmNoSpace) action()             {}
func (FindMember) action()                {}
func (LabelPod) action()                  {}
func (WriteRecord) action()               {}
func (CreatePeerService) action()         {}
func (RepairPeerService) action()         {}
func (EnsureClientService) action()       {}
func (EnsurePodDisruptionBudget) action() {}
func (DeletePodDisruptionBudget) action() {}
func (GuardRecoveryMember) action()       {}
func (UnguardRecoveryMember) action()     {}
func (RecordBootstrap) action()           {}
func (RecordDeclaration) action()         {}
func (TakeBack) action()                  {}
func (CreateBootstrapPod) action()        {}
func (AddMember) action()                 {}
func (CreatePod) action()                 {}
func (PreparePod) action()                {}
func (AdmitPod) action()                  {}
func (ConfirmPVC) action()                {}
func (CreatePVC) action()                 {}
func (PromoteMember) action()             {}
func (RemoveMember) action()              {}
func (MoveLeader) action()                {}
func (DeletePod) action()                 {}
func (DeletePVC) action()                 {}
func (ReleasePVC) action()                {}
func (RepairPVC) action()                 {}
func (RecordLog) action()                 {}
func (RecordPutBack) action()             {}
func (RecordCorruptVoters) action()       {}
func (WriteRemoval) action()              {}
func (ForceSnapshot) action()             {}
func (UpgradePod) action()                {}
func (RecreatePod) action()               {}
