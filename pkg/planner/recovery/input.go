// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// Input is what a decision is made from.
type Input struct {
	// Now is the one time of the observation.
	Now time.Time
	// NewName is a member name that was never used.
	NewName string
	Desired Desired

	// Recorded is the recovery of the record of the cluster, and Reported that of the last
	// status, which may be a new request. Each may be nil.
	Recorded, Reported *v1beta2.RecoveryStatus
	// Begun are the IDs of all recoveries that have begun, by the record.
	Begun []string
	// RecordedID is the cluster ID of the record; empty if the record does not hold it.
	RecordedID string
	// ReplacedID is the cluster ID that a recovery which begins now records as the old one.
	ReplacedID string
	// Bootstrapped is true if the cluster has ever served.
	Bootstrapped bool
	// LostSince is since when it is proven that the quorum cannot come back; nil while it is not.
	LostSince  *metav1.Time
	LastBackup *v1beta2.LastBackup
	// LossRestore is the status of the EtcdRestore that LossRestoreName names; nil if there is none.
	LossRestore *v1beta2.RestoreStatus
	// LacksBackup is true if the EtcdRestore that has asked for the recovery requires a pre-restore backup, and none is fresh.
	LacksBackup bool
	// Unconfirmed is true if that pre-restore backup is of a member that no quorum confirmed: it may lack what others have.
	Unconfirmed bool
	// Stored is true if a pre-restore backup has the data that is replaced: fresh, confirmed by a quorum, and not one that a
	// user does without. Neither the EtcdRestore nor the record says that the data of the members differs. A restore deletes
	// PVCs of old members only then.
	Stored bool
	// BackedUp is the raft index up to which the pre-restore backup has the log; 0 if that is unknown. QuorumLostFor is for
	// how long the last status says that the quorum is lost.
	BackedUp      int64
	QuorumLostFor time.Duration
	// RestoreOver is true if that EtcdRestore no longer exists, or has ended because nothing showed it this recovery.
	// Then nothing says any more what is stored, and a user may believe that nothing goes on.
	RestoreOver bool
	// Repeats is true if the last request is of an EtcdRestore that the cluster has carried out before. It may replace
	// only what a permanent quorum loss has left.
	Repeats bool

	// Linearizable is true if the member list was read through a quorum.
	Linearizable bool
	// ClusterID is that of the responses, in hexadecimal; "0" if no member responded.
	ClusterID string
	// Members, Pods and Facts tell of the same members, pods and PVCs.
	Members        []Member
	Pods           []Pod
	Facts          *diagnosis.Cluster
	RecoveryMember RecoveryMember
	// Fenced are the PVCs of old members that the fence of this cutover has taken from their members. The facts lack them.
	Fenced []string
}

// Desired is what the spec says about recoveries.
type Desired struct {
	// Cluster is the name of the EtcdCluster.
	Cluster string
	// Size is the desired number of voters.
	Size int
	// Automatic is true if the cluster may be recovered without a request.
	Automatic bool
	// Persistent is true if each member keeps its data on a PVC.
	Persistent bool
	// Version is the declared version of etcd, with which a restore starts.
	Version string
}

// Member is a member of etcd.
type Member struct {
	// ID in hexadecimal.
	ID, Name string
	// Version of etcd with which a recovery from the member starts.
	Version string
}

// Pod is a pod of the cluster that may run an old member.
type Pod struct {
	Name, Node string
	Evidence   diagnosis.Evidence
	// EndsBy is when the node must have ended a pod whose deletion was requested.
	EndsBy time.Time
	// NodeNotReady is true if the node is not ready, so that what Kubernetes says of the pod
	// may be old.
	NodeNotReady bool
	// NodeUnread is why the node could not be read, if NodeNotReady is true because of that.
	NodeUnread string
	// NodeAbsent is true if the node does not exist. Kubernetes removes the pod soon.
	NodeAbsent bool
}

// RecoveryMember is the first member of a recovery under way.
type RecoveryMember struct {
	// Pod is nil if there is none.
	Pod *RecoveryPod
	// Hidden is true while the pod or its PVC is not behind the Services.
	Hidden bool
	// HasPVC is true if its PVC exists and is not being deleted. PVCDeleted is true if its deletion was requested.
	HasPVC, PVCDeleted bool
	// Unfilled is true if its PVC was made after the first one was lost, and no pod has filled it.
	Unfilled bool
	// Serves is true if it responds and leads.
	Serves bool
	// ClusterID in its response, in hexadecimal.
	ClusterID string
}

// RecoveryPod is the pod of a recovery member.
type RecoveryPod struct {
	// Finished pods failed or completed as a whole, Terminating pods have a requested deletion,
	// and Running is true while the etcd container runs.
	Finished, Terminating, Running bool
	// HasRun is true if the etcd container runs or has run in the pod, so that what fills its data directory has ended well.
	HasRun bool
	// Outdated is true if the pod was made from another declaration than the present one.
	Outdated bool
	// Away is true if the pod was bound to a node and cannot come back for longer than a member
	// may be away. AwayWhy is the reason as text.
	Away    bool
	AwayWhy string
	// Waiting says why the pod does not run, in the words of Kubernetes.
	Waiting string
	// Fills is true if the pod has what fills its data directory, and does not need it again after it has served.
	// LacksPVC is true if its own PVC does not exist.
	Fills, LacksPVC bool
	// FailsToFill is true if the agent in the pod has found nothing on the volume, and cannot read or use the backup.
	FailsToFill bool
	// Node is empty until the scheduler has chosen one. MountsSource is true if the pod mounts the PVC that the recovery
	// reads.
	Node         string
	MountsSource bool
	// Made is when the pod was made, and EndsBy when its node must have ended it after its deletion was requested.
	Made, EndsBy time.Time
}

// isEnding is true for a pod that exists and has ended or is about to.
func (p *RecoveryPod) isEnding() bool {
	return p != nil && diagnosis.EvidenceFrom(p.Finished, p.Terminating).IsEnding()
}

// reason returns what the pod waits for as the end of a sentence; empty if that is not known.
func (p *RecoveryPod) reason() string {
	if p == nil || p.Waiting == "" {
		return ""
	}
	return ": " + p.Waiting
}

// source returns the member that responds and that a recovery continues from: the requested one, or
// the best one if none is requested; nil if there is none.
func (in *Input) source(requested string) *diagnosis.Member {
	plan, err := in.Facts.PlanRecovery(requested)
	if err != nil || plan.PVC != "" {
		return nil
	}
	return plan.Source
}

// version returns the version of etcd with which a recovery from a member starts.
func (in *Input) version(name string) string {
	i := slices.IndexFunc(in.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return ""
	}
	return in.Members[i].Version
}

// isPublished is true for a recovery member that is a member behind the Services.
func (in *Input) isPublished(name string) bool {
	return in.Facts.Evidence(name) != diagnosis.PodAbsent || in.Facts.HasPVC(name)
}

// everyName returns the names of all members, and of whatever else the cluster has.
func (in *Input) everyName() []string {
	list := in.Facts.Remains()
	for i := range in.Members {
		list = append(list, in.Members[i].Name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// oldMembers returns the names of all members that a recovery decommissions: those that
// existed when it began, and those that have joined since, because a cluster serves on
// while it is restored.
func (in *Input) oldMembers(r *v1beta2.RecoveryStatus) []string {
	list := append(in.everyName(), r.OldMembers...)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(name string) bool { return name == r.RecoveryMember })
}
