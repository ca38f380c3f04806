// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// automaticRestore restores the last backup of a cluster without a member and a PVC, if the
// spec allows it. There is no survivor to recover from then, and nothing to lose. It is done
// once for each such loss. An EtcdRestore that failed needs a person.
func automaticRestore(o *Observed) (Plan, bool) {
	if !o.recoversNow() || len(o.remains()) > 0 || o.source("") != nil {
		return Plan{}, false
	}
	backup := o.Cluster.Status.LastBackup
	if err := resources.Restorable(backup); err != nil {
		reason := ReasonNoBackup
		if errors.Is(err, resources.ErrBackupNotVerified) {
			reason = ReasonBackupNotVerified
		}
		return wait(recheckSteady, reason, "no pod and no volume of any member is left, and "+err.Error(), "restore a backup with an EtcdRestore"), true
	}
	name := o.restoreName()
	plan := wait(recheckSteady, ReasonWaitingForRestore,
		fmt.Sprintf("no pod and no PVC of any member exists; EtcdRestore %s restores the last backup, EtcdBackup %s", name, backup.Name),
		noActionNeeded+" See the status of that EtcdRestore.")
	lost := make([]string, 0, len(o.Etcd.Members))
	for i := range o.Etcd.Members {
		lost = append(lost, o.Etcd.Members[i].Name)
	}
	plan.Actions = []Action{RequestRestore{Name: name, Backup: backup.Name, Lost: lost}}
	return plan, true
}

// restoreName is the same for the same members, so that their loss causes one restore. It
// follows from the status, which lists them, and not from the record, which may be lost
// between two looks.
func (o *Observed) restoreName() string {
	ids := make([]string, 0, len(o.Etcd.Members))
	for i := range o.Etcd.Members {
		ids = append(ids, o.Etcd.Members[i].id())
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, " ")))
	return o.Cluster.Name + "-first-aid-" + hex.EncodeToString(sum[:4])
}
