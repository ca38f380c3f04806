// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"

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

// restoreName is the same for the same members, so that their loss causes one restore.
func (o *Observed) restoreName() string {
	id := o.PeerService.ClusterID
	if id == "" || id == unknownClusterID {
		id = "members"
	}
	return o.Cluster.Name + "-first-aid-" + id
}
