// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

// strategy prepares and validates EtcdBackups before they are stored.
type strategy = genericstore.Strategy[*v1beta2.EtcdBackup, v1beta2.BackupSpec, v1beta2.BackupStatus]

func newStrategy(typer runtime.ObjectTyper) strategy {
	return genericstore.NewStrategy(typer, genericstore.Definition[*v1beta2.EtcdBackup, v1beta2.BackupSpec, v1beta2.BackupStatus]{
		GroupVersion: v1beta2.SchemeGroupVersion,
		Spec:         func(obj *v1beta2.EtcdBackup) *v1beta2.BackupSpec { return &obj.Spec },
		Status:       func(obj *v1beta2.EtcdBackup) *v1beta2.BackupStatus { return &obj.Status },
		InitialStatus: func(created metav1.Time) v1beta2.BackupStatus {
			return v1beta2.BackupStatus{Conditions: genericstore.NotObservedConditions(created)}
		},
		KeepOnUpdate: func(newer, older *v1beta2.EtcdBackup) {
			// A client that does not know the field must not lift the hold.
			newer.Spec.Hold = cmp.Or(newer.Spec.Hold, older.Spec.Hold)
		},
		Validate:             validation.ValidateEtcdBackup,
		ValidateUpdate:       validation.ValidateEtcdBackupUpdate,
		ValidateStatusUpdate: validation.ValidateEtcdBackupStatusUpdate,
		Warnings:             validation.WarningsForEtcdBackup,
		ReplaceWarnings:      validation.ReleasedFromEtcdBackup,
	})
}
