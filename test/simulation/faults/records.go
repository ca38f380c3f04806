// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// Ways to lose the record of the cluster.
const (
	DeleteRecord = iota
	EmptyRecord
	// ReplaceRecord leaves an empty ConfigMap without labels and annotations.
	ReplaceRecord
	// StripRecord leaves the labels and the content.
	StripRecord
	// RelabelRecord leaves the annotations and the content.
	RelabelRecord
	// DropRecordKey removes one key.
	DropRecordKey
	recordLosses
)

// LoseRecord deletes or spoils the record of the cluster, as a user or another program does.
func (w *World) LoseRecord(how, which int) {
	switch how % recordLosses {
	case DeleteRecord:
		w.Store.Remove(kubernetes.KindRecord, schedules.RecordName)
	case EmptyRecord:
		w.editRecord(func(cm *corev1.ConfigMap) { cm.Data = nil })
	case ReplaceRecord:
		w.editRecord(func(cm *corev1.ConfigMap) {
			cm.Data, cm.Labels, cm.Annotations, cm.OwnerReferences = nil, nil, nil, nil
		})
	case StripRecord:
		w.editRecord(func(cm *corev1.ConfigMap) { cm.Annotations, cm.OwnerReferences = nil, nil })
	case RelabelRecord:
		w.editRecord(func(cm *corev1.ConfigMap) { delete(cm.Labels, resources.LabelApp) })
	case DropRecordKey:
		w.editRecord(func(cm *corev1.ConfigMap) {
			keys := slices.Sorted(maps.Keys(cm.Data))
			delete(cm.Data, keys[which%len(keys)])
		})
	}
}

func (w *World) editRecord(change func(*corev1.ConfigMap)) {
	kubernetes.Edit(w.Store, kubernetes.KindRecord, schedules.RecordName, func(cm *corev1.ConfigMap) {
		if len(cm.Data) > 0 {
			change(cm)
		}
	})
}
