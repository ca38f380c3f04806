// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Action is one side effect. The set is closed: the controller has one function
// for each.
type Action interface{ action() }

// Hold puts the finalizer on the cluster, before anything is created for it.
type Hold struct{}

// MarkObject has exactly the object with this UID say whose it is, and whether the cluster
// is protected.
type MarkObject struct{ Object }

// Dissolve deletes the PVCs of a cluster that is being deleted, if its retention policy
// says so, and removes the finalizer.
type Dissolve struct{}

func (Hold) action()       {}
func (MarkObject) action() {}
func (Dissolve) action()   {}

// CreatePeerService makes the headless service. Seed is claimed for the one seed of
// the cluster; it is empty if the cluster has been bootstrapped before, and then
// ClusterID is recorded at once.
type CreatePeerService struct {
	Seed      string
	ClusterID string
}

// RepairPeerService puts back what the controller owns of the headless service.
type RepairPeerService struct{}

// EnsureClientService makes the service for clients or repairs it.
type EnsureClientService struct{}

// EnsurePodDisruptionBudget makes the budget or repairs it.
type EnsurePodDisruptionBudget struct{ Voters int }

// DeletePodDisruptionBudget removes the budget.
type DeletePodDisruptionBudget struct{}

// RecordBootstrap writes etcd's cluster ID into the record. From then on no seed
// is ever made again.
// Log, if it says anything, is recorded with it.
type RecordBootstrap struct {
	ClusterID uint64
	Log       LogRecord
}

// CreateSeed makes the pod that starts the cluster, after a live check that the
// record names it and that nobody has bootstrapped the cluster. Version is the one it
// starts with; empty for the declared one.
type CreateSeed struct{ Name, Version string }

// AddMember adds the member of the prepared pod with this UID to etcd: as a learner, or
// as a voter where etcd is too old to know learners. Admitted is true if the pod was
// admitted before. Replaces is true if it is one more than declared, until another one
// goes.
type AddMember struct {
	Name, UID                 string
	Voter, Replaces, Admitted bool
}

// PreparePod makes the pod of a member that will be added to etcd when the pod waits for
// that, and before it the PVC if NewClaim is true. Version is empty for the declared one.
type PreparePod struct {
	Name, Version string
	NewClaim      bool
}

// AdmitPod lets etcd start in the prepared pod with this UID. Peers are the names of all
// members in etcd's list, its own among them.
type AdmitPod struct {
	Name, UID string
	Peers     []string
}

// CreatePod makes the pod of a member that returns to its volume. Peers are the names of
// all members in etcd's list, its own among them. Version is empty for the declared one.
// Joined is true if the volume holds its data.
type CreatePod struct {
	Name    string
	Learner bool
	Peers   []string
	Version string
	Joined  bool
}

// CreateClaim makes the PVC of the first member.
type CreateClaim struct{ Name string }

// PromoteMember makes a learner a voter.
type PromoteMember struct {
	ID   uint64
	Name string
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
	RemoveScaleDown RemoveReason = "ScaleDown"
	RemoveLost      RemoveReason = "Lost"
	RemoveUnwanted  RemoveReason = "Unwanted"
	RemoveMisfit    RemoveReason = "Misfit"
	RemoveReplaced  RemoveReason = "Replaced"
	// RemoveWedged is for a learner that ends again and again.
	RemoveWedged RemoveReason = "Wedged"
)

// MoveLeader hands the leadership from one member to another.
type MoveLeader struct {
	From, To         uint64
	FromName, ToName string
}

// DeletePod deletes exactly the pod with this UID. If Seed is true, only while the
// record says that the cluster has never served, and only a pod that does not run. If
// Hibernate is true, only while the cluster is declared to have none. If Stranded is
// true, only a pod that does not run and has no claim. If Leaves is true, its member
// still votes and is removed as soon as it has ended what clients asked it for: only
// while the spec is as observed and the other voters that serve are here to stay. If
// Replaced is true, another member has taken the place of that one. If
// Prepared is true, only a pod that no member has used.
type DeletePod struct {
	Name, UID                                             string
	Seed, Hibernate, Stranded, Leaves, Replaced, Prepared bool
}

// DeleteClaim deletes exactly the PVC with this UID. If Prepared is true, only one that
// no member has used.
type DeleteClaim struct {
	Name, UID string
	Prepared  bool
}

// ReleaseClaim gives up ownership of a claim that shall be retained, so that
// nothing here deletes it later.
type ReleaseClaim struct{ Name, UID string }

// RepairClaim gives exactly the claim with this UID the owner and the labels that it
// should have, and asks for a larger volume if one is declared.
type RepairClaim struct{ Name, UID string }

// RecordLog writes the record of what is in the log of etcd, if nobody has written there
// since the observation.
type RecordLog struct{ Log LogRecord }

// PadLog adds entries to the log of etcd that change nothing.
type PadLog struct{ Entries int }

// UpgradePod gives a pod the image of the wanted version; its container restarts in
// place with its data. If Waiting is true, only a container that does not run. Outage
// is true if the others are no quorum meanwhile, and cannot be.
type UpgradePod struct {
	Name, UID, Version string
	Waiting, Outage    bool
}

// RecreatePod deletes the pod of a member that has a volume, so that it is made again
// as it is declared now, with a version. Waiting and Outage are as in UpgradePod.
type RecreatePod struct {
	Name, UID, Version string
	Waiting, Outage    bool
}

// FindMember looks in the live API for the pod and the volume of a member that seems
// to be gone, and makes them visible again if they only have lost their labels.
type FindMember struct{ Name string }

// LabelPod says on a pod what its member is. A pod that does not say what it was made
// from says so afterwards. Joined is true for a voter that has its data and must never
// start without.
type LabelPod struct {
	Name, UID string
	Role      PodRole
	Joined    bool
}

// RecordRecovery writes how far a recovery has come on the peer service, if nobody has
// written there since the observation. Lost are voters that must be seen to be gone in
// the live API first, and Gone is a seed that must.
type RecordRecovery struct {
	Recovery v1beta2.RecoveryStatus
	Lost     []string
	Gone     string
}

// CreateReseed makes the seed of a recovery and its volume, hidden from the services.
type CreateReseed struct{ Recovery v1beta2.RecoveryStatus }

// ProveWrite makes etcd commit a write: the hidden seed alone, or the cluster.
type ProveWrite struct{ Hidden bool }

// DropSeed deletes the hidden seed and its volume. Nobody has been let in to it.
type DropSeed struct{ Name string }

// Retire takes everything but the seed of a recovery out of service: what belongs to the
// old members loses its place behind the services, and their pods are deleted. Their
// volumes stay.
type Retire struct{ Recovery v1beta2.RecoveryStatus }

// Reveal puts the seed behind the services.
type Reveal struct{ Name string }

// DropRetired deletes the volumes of the old members, or gives them up where the user
// wants to keep them.
type DropRetired struct{ Recovery v1beta2.RecoveryStatus }

// RequestRestore makes the EtcdRestore of a cluster of which nothing is left. Lost are
// its voters, which must be seen to be gone in the live API first.
type RequestRestore struct {
	Name, Backup string
	Lost         []string
}

func (RequestRestore) action() {}
func (RecordRecovery) action() {}
func (CreateReseed) action()   {}
func (ProveWrite) action()     {}
func (DropSeed) action()       {}
func (Retire) action()         {}
func (Reveal) action()         {}
func (DropRetired) action()    {}

// Defragment has a member write its database anew. It takes as long as that is large,
// so it goes on as a task beside the reconciles.
type Defragment struct{ Name, Task string }

// DisarmNoSpace takes back the alarm of a full database that the member with this ID
// has raised.
type DisarmNoSpace struct{ ID uint64 }

func (Defragment) action()                {}
func (DisarmNoSpace) action()             {}
func (FindMember) action()                {}
func (LabelPod) action()                  {}
func (CreatePeerService) action()         {}
func (RepairPeerService) action()         {}
func (EnsureClientService) action()       {}
func (EnsurePodDisruptionBudget) action() {}
func (DeletePodDisruptionBudget) action() {}
func (RecordBootstrap) action()           {}
func (CreateSeed) action()                {}
func (AddMember) action()                 {}
func (CreatePod) action()                 {}
func (PreparePod) action()                {}
func (AdmitPod) action()                  {}
func (CreateClaim) action()               {}
func (PromoteMember) action()             {}
func (RemoveMember) action()              {}
func (MoveLeader) action()                {}
func (DeletePod) action()                 {}
func (DeleteClaim) action()               {}
func (ReleaseClaim) action()              {}
func (RepairClaim) action()               {}
func (RecordLog) action()                 {}
func (PadLog) action()                    {}
func (UpgradePod) action()                {}
func (RecreatePod) action()               {}

// Plan is what a decision comes to.
type Plan struct {
	// Rule is the name of the rule that spoke.
	Rule string
	// Actions in the order in which they must be done; the first error ends the plan.
	Actions []Action
	// Wait is what the cluster waits for, if it waits.
	Wait *Wait
	// Leaving is the name of the voter that is out of the client Service, or is about to
	// be: it is removed, restarts or is defragmented next. Empty if there is none.
	Leaving string
	// RequeueAfter is when to look again if nothing happens before; 0: not at all.
	RequeueAfter time.Duration
	// ServiceRefused is why Kubernetes does not let the service for clients be made or
	// changed, in its own words; empty if it does.
	ServiceRefused string
	// Operation, if not nil, is what the operation of the status is from now on.
	Operation *v1beta2.ClusterOperation
}

// Wait is something that must happen before the controller can go on.
type Wait struct {
	// Reason in one CamelCase word.
	Reason string
	// Message for a reader.
	Message string
	// Unblock says what would let the controller go on.
	Unblock string
}
