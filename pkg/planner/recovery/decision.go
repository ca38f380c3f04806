// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"

// Decision is what happens next about a recovery.
type Decision struct {
	// Step is nil if there is nothing to do but to wait.
	Step Step
	// Wait is what the recovery waits for, if it waits.
	Wait    *Wait
	Recheck Recheck
}

// Recheck says what brings the next decision about, and with that when to look again.
type Recheck int

// Values of Recheck.
const (
	// OnEvent: an event announces it.
	OnEvent Recheck = iota
	// OnResponse: the next probe of a member shows it.
	OnResponse
	// AtOnce: nothing is in the way.
	AtOnce
	// AtRest: nothing is expected soon.
	AtRest
)

// Wait is something that must happen before the recovery can go on.
type Wait struct {
	// Reason is one of the reasons of this package, or v1beta2.ReasonOldMemberMayRun.
	Reason string
	// Message says what was found, and Remedy what lets the recovery continue.
	Message, Remedy string
}

// Reasons to wait.
const (
	// ReasonBackupEncrypted: the last backup is encrypted, and the controller knows no identities.
	ReasonBackupEncrypted = "BackupEncrypted"
	// ReasonBackupNotVerified: the only backup that could be restored was not verified.
	ReasonBackupNotVerified = "BackupNotVerified"
	// ReasonLastBackupDataDiffers: the last backup may have the wrong data, because etcd reported the alarm CORRUPT when it was made.
	ReasonLastBackupDataDiffers = "LastBackupDataDiffers"
	// ReasonNoBackup: there is no backup that could be restored.
	ReasonNoBackup = "NoBackup"
	// ReasonRestoreEnded: the EtcdRestore that was created for the loss of all members has ended.
	ReasonRestoreEnded = "RestoreEnded"
	// ReasonSourceLost: the member that the recovery copies from no longer exists.
	ReasonSourceLost = "SourceLost"
	// ReasonWaitingForRecoveryMember: the recovery member does not serve.
	ReasonWaitingForRecoveryMember = "WaitingForRecoveryMember"
	// ReasonWaitingForRestore: an EtcdRestore fills the cluster.
	ReasonWaitingForRestore = v1beta2.ReasonWaitingForRestore
	// ReasonWaitingForSurvivor: no member responds that a recovery could copy from.
	ReasonWaitingForSurvivor = "WaitingForSurvivor"
)

func wait(recheck Recheck, reason, message, remedy string) Decision {
	return Decision{Recheck: recheck, Wait: &Wait{Reason: reason, Message: message, Remedy: remedy}}
}

// Step is what is done next. It is one of the types below.
type Step interface{ step() }

type (
	// Record writes the progress to the record of the cluster, if that has not changed since
	// the observation. Lost are voters, and Gone is a recovery member, that must be confirmed to
	// be gone first.
	Record struct {
		Recovery v1beta2.RecoveryStatus
		Lost     []string
		Gone     string
	}
	// Abandon ends a recovery and leaves the old members as they are. A recovery member that
	// the recovery names is deleted first.
	Abandon struct{ Recovery v1beta2.RecoveryStatus }
	// StartAgain deletes the recovery member and records that another must be filled.
	StartAgain struct{ Recovery v1beta2.RecoveryStatus }
	// Fill creates the recovery member, whose agent fills it. WithoutSource is true if the PVC that the recovery reads
	// is lost: the pod goes without that PVC, and starts only if the recovery member was filled before. OldMembersStay is
	// true if no old member is to start again: a person may have deleted their pods.
	Fill struct {
		Recovery       v1beta2.RecoveryStatus
		WithoutSource  bool
		OldMembersStay bool
	}
	// StopSource deletes the pod of the member whose PVC the recovery reads. Lost are the voters,
	// which must be confirmed to be gone first.
	StopSource struct {
		Recovery v1beta2.RecoveryStatus
		Lost     []string
	}
	// ReviveOldMembers starts old members that have stopped, while the recovery waits. The one
	// called Except stays stopped.
	ReviveOldMembers struct{ Except string }
	// BeginCutover has the recovery member commit a write, then records that the old members go.
	BeginCutover struct{ Recovery v1beta2.RecoveryStatus }
	// RestartRecoveryMember deletes the pod of the recovery member, which is then created again.
	RestartRecoveryMember struct{}
	// Fence decommissions the old members of Recovery, then records Next.
	Fence struct{ Recovery, Next v1beta2.RecoveryStatus }
	// Publish puts the recovery member behind the Services.
	Publish struct{ RecoveryMember string }
	// CleanUp has the new cluster commit a write, deletes or releases the PVCs of the old members
	// of Recovery, then records Next. Kept are old members whose PVCs are released, whatever the retention policy says.
	CleanUp struct {
		Recovery, Next v1beta2.RecoveryStatus
		Kept           []string
	}
	// RequestRestore creates the EtcdRestore called Name of one backup of an EtcdBackup: a later one may be of data
	// that a restore has replaced. Lost are the voters, which must be confirmed to be gone first.
	RequestRestore struct {
		Name, Backup string
		Revision     int64
		Lost         []string
	}
)

func (Record) step()                {}
func (Abandon) step()               {}
func (StartAgain) step()            {}
func (Fill) step()                  {}
func (StopSource) step()            {}
func (ReviveOldMembers) step()      {}
func (BeginCutover) step()          {}
func (RestartRecoveryMember) step() {}
func (Fence) step()                 {}
func (Publish) step()               {}
func (CleanUp) step()               {}
func (RequestRestore) step()        {}
