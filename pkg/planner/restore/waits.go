// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// Waits has a row for every reason for which an EtcdRestore waits. The bounds count from the last step (lastStep).
var Waits = waits.Table{
	ReasonBackupNotFound:                waits.New("the EtcdBackup and its revision", waits.User, waits.Soon, "Name an EtcdBackup and a revision that exist in another EtcdRestore."),
	ReasonNoBackupYet:                   waits.New("the first backup of the EtcdBackup", waits.Controller, waits.Transfer, "Find out why that EtcdBackup stores nothing: see its status."),
	ReasonBackupMayBeDeleted:            waits.New("the end of a backup's Job and of its pods", waits.Controller, waits.Late, "Delete the Job that the message names. If the node of its pod is lost, make sure that the node is off, then delete the pod with --force."),
	ReasonInvalidRequest:                waits.New("a spec that can be used", waits.User, waits.Soon, "Correct what the message names."),
	ReasonClusterNotFound:               waits.New("the EtcdCluster", waits.User, waits.Soon, "Create the EtcdCluster, or give spec.clusterTemplate in another EtcdRestore."),
	ReasonClusterTerminating:            waits.New("the end of the EtcdCluster that is being deleted", waits.Kubernetes, waits.Transfer, "Find out what keeps the EtcdCluster: its finalizers and spec.deletionProtection."),
	ReasonClusterNotObserved:            waits.New("the first status of the EtcdCluster", waits.Controller, waits.Transfer, "Find out why the controller does not reconcile the EtcdCluster: see its log."),
	ReasonClusterAwaitsVolumes:          waits.New("a decision about the PVCs of an earlier cluster", waits.User, waits.Soon, "Decide as the status of the EtcdCluster says. Delete this EtcdRestore if a backup tool has brought it back."),
	ReasonClusterPaused:                 waits.New("spec.paused=false of the EtcdCluster", waits.User, waits.Soon, "Set spec.paused=false in the EtcdCluster."),
	ReasonClusterHibernated:             waits.New("a size above 0 of the EtcdCluster", waits.User, waits.Soon, "Set spec.size in the EtcdCluster."),
	ReasonRecoveryUnderWay:              waits.New("another recovery", waits.Controller, waits.Transfer, "See status.recovery of the EtcdCluster."),
	ReasonRecoveryNotReported:           waits.New("the recovery in the status of the EtcdCluster", waits.Controller, waits.Late, "Find out why the controller does not reconcile the EtcdCluster: see its log."),
	ReasonAnotherRestore:                waits.New("another EtcdRestore", waits.Controller, waits.Transfer, "See the status of that EtcdRestore, or delete it."),
	ReasonPreRestoreBackup:              waits.New("the pre-restore backup", waits.Controller, waits.Transfer, "See the status of that EtcdBackup, or suspend it to restore without it."),
	ReasonPreRestoreBackupFailed:        waits.New("a pre-restore backup that is stored", waits.User, waits.Soon, "Repair the backup location that the message names, then delete that EtcdBackup, which is made again at once. To restore without it, suspend it."),
	ReasonNoLocationForPreRestoreBackup: waits.New("a place for the pre-restore backup", waits.User, waits.Soon, "Set the backup location and the recipients in spec.backup of the EtcdCluster."),
	ReasonWaitingForMember:              waits.New("a member that responds", waits.Kubernetes, waits.Late, "Bring a member back. To lose what a member without a PVC has, delete its pod. Otherwise suspend the pre-restore backup, if there is one."),
	ReasonRecoveryMemberNotStarted:      waits.New("the pod of the recovery member", waits.Kubernetes, waits.Transfer, "Remove the cause that the message names, such as an image that cannot be pulled."),
	ReasonRecoveryMemberLost:            waits.New("another pod of the recovery member", waits.Controller, waits.Transfer, "Set what the pod lacks in spec.pod of the EtcdCluster, or delete the EtcdRestore."),
	ReasonBackupUnreadable:              waits.New("a backup location that can be read", waits.User, waits.Late, "Remove the cause that the message names. To restore another backup instead, create another EtcdRestore."),
	ReasonAutomaticRestoreHeld:          waits.New("a proven permanent quorum loss of a cluster that may be restored without a request", waits.User, waits.Late, "Delete the EtcdRestore if it is not wanted any more. Otherwise set spec.recovery.quorumLoss=Automatic, and see the condition QuorumLost of the EtcdCluster."),
	ReasonNotStarted:                    waits.New("a pod that starts", waits.Kubernetes, waits.Transfer, "Remove the cause that the message names."),
	ReasonRejected:                      waits.New("a Job that Kubernetes accepts", waits.User, waits.Soon, "Raise the quota or change the policy that the message names."),
	ReasonVerifying:                     waits.Copy("the Job that reads the backup", waits.Controller, waits.Transfer, "Find out why the Job does not end: see its pod. To read the backup in another Job, delete that Job."),
	ReasonNodeLost:                      waits.New("another attempt to read the backup", waits.Controller, waits.Transfer, "Keep pods off the node that the message names: cordon it, or set spec.job of another EtcdRestore."),
	ReasonJobTerminating:                waits.New("the end of a Job that is being deleted", waits.Kubernetes, waits.Late, "Find out what keeps the Job: its finalizers and its pods. If the node of a pod is lost, delete the pod with --force."),
	v1beta2.ReasonOldMemberMayRun:       waits.New("the proof that an old member has ended", waits.User, waits.Soon, "Bring the node of that member back, or confirm that the node is off."),
}

// rowOf returns the row of a reason. The phases of a recovery, and what ends an attempt, have none.
func rowOf(reason string) waits.Row {
	if row, found := Waits[reason]; found {
		return row
	}
	return waits.Copy("the recovery", waits.Controller, waits.Transfer, "See status.recovery of the EtcdCluster.")
}
