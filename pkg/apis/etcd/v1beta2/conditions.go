// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import corev1 "k8s.io/api/core/v1"

// conditions says of each type of condition of the three kinds what it means. Everything that shows
// faults, or counts them, goes by this table.
var conditions = map[string]struct {
	// usual is the status while all is well. A condition that is present only while it is True has False.
	usual corev1.ConditionStatus
	// work is true if another status is the work of the controller and no fault.
	work bool
}{
	ConditionReady:       {usual: corev1.ConditionTrue},
	ConditionReconciling: {usual: corev1.ConditionFalse, work: true},
	ConditionStalled:     {usual: corev1.ConditionFalse},

	ConditionStatusIncomplete: {usual: corev1.ConditionFalse},

	string(ClusterConditionAvailable):         {usual: corev1.ConditionTrue},
	string(ClusterConditionProgressing):       {usual: corev1.ConditionFalse, work: true}, // also of EtcdBackups and EtcdRestores
	string(ClusterConditionDegraded):          {usual: corev1.ConditionFalse},
	string(ClusterConditionQuorumLost):        {usual: corev1.ConditionFalse},
	string(ClusterConditionScaling):           {usual: corev1.ConditionFalse, work: true},
	string(ClusterConditionUpgrading):         {usual: corev1.ConditionFalse, work: true},
	string(ClusterConditionRecovering):        {usual: corev1.ConditionFalse, work: true},
	string(ClusterConditionPaused):            {usual: corev1.ConditionFalse},
	string(ClusterConditionBackupHealthy):     {usual: corev1.ConditionTrue},
	string(ClusterConditionCertificatesValid): {usual: corev1.ConditionTrue},
	string(ClusterConditionVolumesAsDeclared): {usual: corev1.ConditionTrue},
	string(ClusterConditionServiceAsDeclared): {usual: corev1.ConditionTrue},
	string(ClusterConditionClientsAsDeclared): {usual: corev1.ConditionTrue},
	string(ClusterConditionBudgetAsDeclared):  {usual: corev1.ConditionTrue}, // present only while it is False
	string(ClusterConditionOnCordonedNode):    {usual: corev1.ConditionFalse},

	"Succeeded":        {usual: corev1.ConditionTrue}, // of EtcdBackups and EtcdRestores
	"RetentionApplied": {usual: corev1.ConditionTrue}, // of EtcdBackups
	// Of EtcdBackups: True while one stays after its TTL, which is what a user or the safety of the data asks for.
	"Kept":     {usual: corev1.ConditionFalse, work: true},
	"Verified": {usual: corev1.ConditionTrue}, // of EtcdRestores
	// Of EtcdRestores: True while a pre-restore backup must come first, which is work of the controller.
	"PreRestoreBackupRequired": {usual: corev1.ConditionFalse, work: true},
}

// UsualStatus returns the status that conditions of a type have while all is well. It is empty for a
// type that this API does not define.
func UsualStatus(conditionType string) corev1.ConditionStatus { return conditions[conditionType].usual }

// IsWork is true for a type of condition whose unusual status means that the controller works, which is
// no fault.
func IsWork(conditionType string) bool { return conditions[conditionType].work }
