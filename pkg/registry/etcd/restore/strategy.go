// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

// strategy prepares and validates EtcdRestores before they are stored.
type strategy = genericstore.Strategy[*v1beta2.EtcdRestore, v1beta2.RestoreSpec, v1beta2.RestoreStatus]

func newStrategy(typer runtime.ObjectTyper) strategy {
	return genericstore.NewStrategy(typer, genericstore.Definition[*v1beta2.EtcdRestore, v1beta2.RestoreSpec, v1beta2.RestoreStatus]{
		GroupVersion: v1beta2.SchemeGroupVersion,
		Spec:         func(obj *v1beta2.EtcdRestore) *v1beta2.RestoreSpec { return &obj.Spec },
		Status:       func(obj *v1beta2.EtcdRestore) *v1beta2.RestoreStatus { return &obj.Status },
		InitialStatus: func(created metav1.Time) v1beta2.RestoreStatus {
			return v1beta2.RestoreStatus{Conditions: genericstore.NotObservedConditions(created)}
		},
		// The spec of an EtcdRestore is immutable. Objects from earlier servers have a version in
		// the template, and an update without that version changes nothing.
		KeepOnUpdate:         keepVersion,
		Validate:             validation.ValidateEtcdRestore,
		ValidateUpdate:       validation.ValidateEtcdRestoreUpdate,
		ValidateStatusUpdate: validation.ValidateEtcdRestoreStatusUpdate,
		Warnings:             validation.WarningsForEtcdRestore,
	})
}

func keepVersion(newer, older *v1beta2.EtcdRestore) {
	if newer.Spec.ClusterTemplate != nil && older.Spec.ClusterTemplate != nil {
		version := &newer.Spec.ClusterTemplate.Spec.Version
		*version = cmp.Or(*version, older.Spec.ClusterTemplate.Spec.Version)
	}
}
