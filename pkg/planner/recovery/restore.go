// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// automaticRestore restores the last backup of a cluster without a member and a PVC, if the
// spec allows it. There is no survivor to recover from then, and nothing to lose. It is done
// once for each such loss. An EtcdRestore that failed needs a person.
func (in *Input) automaticRestore() (Decision, bool) {
	if !in.recoversNow() || len(in.Facts.Remains()) > 0 || in.source("") != nil {
		return Decision{}, false
	}
	backup := in.LastBackup
	if err := resources.Restorable(backup, false); err != nil {
		reason, remedy := ReasonNoBackup, "restore a backup with an EtcdRestore"
		switch {
		case errors.Is(err, resources.ErrBackupNotVerified):
			reason = ReasonBackupNotVerified
		case errors.Is(err, resources.ErrBackupDataDiffers):
			reason, remedy = ReasonLastBackupDataDiffers, "restore a backup with an EtcdRestore that names it, first into another cluster to look at its data"
		case errors.Is(err, resources.ErrBackupEncrypted):
			reason, remedy = ReasonBackupEncrypted, diagnosis.RestoreEncrypted(in.Desired.Cluster, backup.Name)
		}
		return wait(AtRest, reason, "no pod and no PVC of any member exists, and "+err.Error(), remedy), true
	}
	name := in.LossRestoreName()
	if outcome := in.lossRestoreOutcome(name); outcome != "" {
		return wait(AtRest, ReasonRestoreEnded,
			fmt.Sprintf("no pod and no PVC of any member exists, and EtcdRestore %s, which was created for this loss, has ended: it is %s", name, outcome),
			in.remedyOfEndedRestore(name, backup.Name)), true
	}
	decision := wait(AtRest, ReasonWaitingForRestore,
		fmt.Sprintf("no pod and no PVC of any member exists; EtcdRestore %s restores the last backup, EtcdBackup %s", name, backup.Name)+in.lossRestoreProgress(),
		diagnosis.NoActionYet+" See the status of that EtcdRestore.")
	if in.LossRestore != nil {
		return decision, true
	}
	lost := make([]string, 0, len(in.Members))
	for i := range in.Members {
		lost = append(lost, in.Members[i].Name)
	}
	decision.Step = RequestRestore{Name: name, Backup: backup.Name, Revision: backup.Revision, Lost: lost}
	return decision, true
}

// lossRestoreOutcome says how the EtcdRestore of this loss has ended, as the end of a sentence; empty
// if it has not ended. The object says so after the record names another recovery, and the record
// after the object was deleted.
func (in *Input) lossRestoreOutcome(name string) string {
	if r := Current(in.Recorded, in.Reported); r != nil && r.Source.Restore == name {
		return string(r.Phase) + explained(r)
	}
	switch r := in.LossRestore; {
	case r == nil:
		return ""
	case r.Phase == v1beta2.RestorePhaseSucceeded:
		return string(r.Phase) + ", and what it made is lost, too"
	case r.Phase == v1beta2.RestorePhaseFailed:
		return string(r.Phase) + ": " + r.Reason
	default:
		return ""
	}
}

// explained is the message of a recovery behind its phase.
func explained(r *v1beta2.RecoveryStatus) string {
	if r.Message == "" {
		return ""
	}
	return ", " + r.Message
}

// remedyOfEndedRestore says how a cluster gets its data after the EtcdRestore of this loss has ended. One that has changed
// nothing is created again after it is deleted.
func (in *Input) remedyOfEndedRestore(name, backup string) string {
	remedy := "Restore a backup with another EtcdRestore; the last one is EtcdBackup " + backup + "."
	if r := Current(in.Recorded, in.Reported); (r == nil || r.Source.Restore != name) && in.LossRestore != nil && in.LossRestore.Phase == v1beta2.RestorePhaseFailed {
		remedy += " To have the controller restore that one again, delete EtcdRestore " + name + "."
	}
	return remedy
}

// lossRestoreProgress says what the EtcdRestore of this loss does, as the end of a sentence; empty if it has not said.
func (in *Input) lossRestoreProgress() string {
	if in.LossRestore == nil {
		return ""
	}
	if c := meta.FindStatusCondition(in.LossRestore.Conditions, v1beta2.ConditionReady); c != nil && c.Message != "" {
		return ": " + c.Message
	}
	return ""
}

// LossRestoreName returns the name of the EtcdRestore that is created for the loss of all members.
// It is the same for the same members, so that their loss causes one restore. It follows from the
// status, which lists them, and not from the record, which may be lost between two looks.
func (in *Input) LossRestoreName() string {
	ids := make([]string, 0, len(in.Members))
	for i := range in.Members {
		ids = append(ids, in.Members[i].ID)
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, " ")))
	return in.Desired.Cluster + "-first-aid-" + hex.EncodeToString(sum[:4])
}
