// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import "github.com/etcd-operator/etcd-operator/pkg/planner/waits"

// Waits has a row for every reason for which an EtcdBackup waits.
var Waits = waits.Table{
	ReasonAnotherBackupRuns: waits.New("another backup of the same cluster", waits.Controller, waits.Transfer, "Find out why that backup does not end: its Job and pod carry its name."),
	ReasonTooManyBackups:    waits.New("one of the backups that run", waits.Controller, waits.Transfer, "Find out why the backups do not end, or let the controller run more of them at the same time."),
	ReasonClusterNotFound:   waits.New("the EtcdCluster", waits.User, waits.Soon, "Create the EtcdCluster, or correct its name in the spec."),
	ReasonNoMemberRuns:      waits.New("a pod of a member that runs", waits.Kubernetes, waits.Late, "Bring a member back: see the status of the EtcdCluster."),
	ReasonInvalidRequest:    waits.New("a spec that can be used", waits.User, waits.Soon, "Correct what the message names in the spec."),
	ReasonInvalidSchedule:   waits.New("a schedule that can be read", waits.User, waits.Soon, "Correct spec.backupPolicy."),
	ReasonRejected:          waits.New("a Job that Kubernetes accepts", waits.User, waits.Soon, "Raise the quota or change the policy that the message names."),
	ReasonNotStarted:        waits.New("a pod that starts", waits.Kubernetes, waits.Late, "Remove the cause that the message names, such as an image that cannot be pulled."),
	ReasonJobNotEnding:      waits.Copy("the end of a Job whose agent does not respond", waits.Kubernetes, waits.Transfer, "Restart the node of the pod that the message names, or make sure that it is off and delete the pod with --force."),
	ReasonNodeLost:          waits.New("the end of a pod on a lost node", waits.Kubernetes, waits.Late, "Bring the node back, or make sure that the node is off, then delete the pod with --force."),
}
