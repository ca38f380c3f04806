// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// lastAid restores the last backup of a cluster of which no member and no volume is left,
// if the spec allows it: then there is nothing to go on from, and nothing to lose. It is
// done once for each time that this happens; an EtcdRestore that failed is for a person to
// look at.
func lastAid(o *Observed) (Plan, bool) {
	if !o.recoversNow() || len(o.remains()) > 0 || o.source("") != nil {
		return Plan{}, false
	}
	backup := o.Cluster.Status.LastBackup
	if err := resources.Restorable(backup); err != nil {
		reason := "NoBackup"
		if errors.Is(err, resources.ErrBackupNotVerified) {
			reason = "BackupNotVerified"
		}
		return wait(recheckSteady, reason, "no pod and no volume of any member is left, and "+err.Error(), "restore a backup with an EtcdRestore"), true
	}
	name := o.firstAidName()
	plan := wait(recheckSteady, "WaitingForRestore",
		fmt.Sprintf("no pod and no volume of any member is left; EtcdRestore %s restores the last backup, EtcdBackup %s", name, backup.Name),
		"nothing, unless it lasts; see the status of that EtcdRestore")
	lost := make([]string, 0, len(o.Etcd.Members))
	for i := range o.Etcd.Members {
		lost = append(lost, o.Etcd.Members[i].Name)
	}
	plan.Actions = []Action{RequestRestore{Name: name, Backup: backup.Name, Lost: lost}}
	return plan, true
}

// firstAidName is the same for the same members, so that their loss is answered once.
func (o *Observed) firstAidName() string {
	id := o.PeerService.ClusterID
	if id == "" || id == unknownClusterID {
		id = "members"
	}
	return o.Cluster.Name + "-first-aid-" + id
}
