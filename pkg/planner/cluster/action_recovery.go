// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"

// RecordRecovery writes the progress of a recovery to the record, if the record has not changed
// since the observation. The live API must first confirm that the voters in Lost and the recovery
// member Gone no longer exist.
type RecordRecovery struct {
	Recovery v1beta2.RecoveryStatus
	Lost     []string
	Gone     string
}

// StopSource deletes the pod whose PVC the recovery reads, if Lost no longer exist in the live API.
type StopSource struct {
	Recovery v1beta2.RecoveryStatus
	Lost     []string
}

// CreateRecoveryMember creates the recovery member and its PVC, hidden from the Services. See recovery.Fill.
type CreateRecoveryMember struct {
	Recovery      v1beta2.RecoveryStatus
	WithoutSource bool
}

// VerifyWrite makes etcd commit a write.
type VerifyWrite struct{ Of WriteTarget }

// WriteTarget says which etcd must commit a write.
type WriteTarget string

// Values of WriteTarget.
const (
	// WriteToCluster: the members behind the Services.
	WriteToCluster WriteTarget = "Cluster"
	// WriteToRecoveryMember: the recovery member alone, before it is published.
	WriteToRecoveryMember WriteTarget = "RecoveryMember"
)

// DeleteRecoveryMember deletes the hidden recovery member and its PVC. No client has reached
// it.
type DeleteRecoveryMember struct{ Name string }

// FenceOldMembers removes everything but the recovery member from the Services, then deletes
// the pods of the old members. Their PVCs stay.
type FenceOldMembers struct{ Recovery v1beta2.RecoveryStatus }

// PublishRecoveryMember puts the recovery member behind the Services.
type PublishRecoveryMember struct{ Name string }

// CleanUpOldPVCs deletes the PVCs of the old members, or releases them where the retention
// policy says so. It releases those of Kept in any case.
type CleanUpOldPVCs struct {
	Recovery v1beta2.RecoveryStatus
	Kept     []string
}

// RequestRestore creates the EtcdRestore of a cluster without pods and PVCs. Lost are its
// voters: the live API must first confirm that their pods no longer exist.
type RequestRestore struct {
	Name, Backup string
	Revision     int64
	Lost         []string
}

func (RequestRestore) action()        {}
func (RecordRecovery) action()        {}
func (StopSource) action()            {}
func (CreateRecoveryMember) action()  {}
func (VerifyWrite) action()           {}
func (DeleteRecoveryMember) action()  {}
func (FenceOldMembers) action()       {}
func (PublishRecoveryMember) action() {}
func (CleanUpOldPVCs) action()        {}
