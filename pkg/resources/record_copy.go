// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Copies of what a record says about recoveries, on pods, PVCs and the peer Service. They outlive the
// record, and so a lost record does not lead to a recovery or a restore that was carried out before.
const (
	// AnnotationRecovery on the pod and the PVC of a recovery member is the recovery that
	// it was created for, in JSON, as it was before anything of the old members was changed.
	AnnotationRecovery = "etcd.database.coreos.com/recovery"
	// AnnotationRecoveries on a pod, a PVC or the peer Service holds the IDs of the recoveries that
	// had begun, the oldest first.
	AnnotationRecoveries = "etcd.database.coreos.com/recoveries"
)

// RecoveryOf returns the recovery that a pod or a PVC was created for, or nil.
func RecoveryOf(object metav1.Object) *v1beta2.RecoveryStatus {
	text, found := object.GetAnnotations()[AnnotationRecovery]
	if !found {
		return nil
	}
	return parseRecovery(text)
}

// CopyRecovery notes on the pod or the PVC of a recovery member how far its recovery is, and
// says whether that is a change.
func CopyRecovery(object metav1.Object, recovery *v1beta2.RecoveryStatus) bool {
	annotations := object.GetAnnotations()
	changed := putAll(&annotations, map[string]string{AnnotationRecovery: formatRecovery(recovery)})
	object.SetAnnotations(annotations)
	return changed
}

// RecoveriesOn returns the IDs of the recoveries that an object knows.
func RecoveriesOn(object metav1.Object) []string {
	return strings.Fields(object.GetAnnotations()[AnnotationRecoveries])
}

// CopyRecoveries notes on an object the IDs that it does not know yet, and says whether
// that is a change.
func CopyRecoveries(object metav1.Object, ids []string) bool {
	if KnowsRecoveries(object, ids) {
		return false
	}
	annotations := object.GetAnnotations()
	putAll(&annotations, map[string]string{AnnotationRecoveries: strings.Join(MergeRecoveries(RecoveriesOn(object), ids), " ")})
	object.SetAnnotations(annotations)
	return true
}

// KnowsRecoveries is true if an object knows all of ids.
func KnowsRecoveries(object metav1.Object, ids []string) bool {
	known := RecoveriesOn(object)
	return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(known, id) })
}

// MergeRecoveries returns the IDs of both lists, those of older first. Beyond MostRecoveries
// the oldest are forgotten.
func MergeRecoveries(older, newer []string) []string {
	if !slices.ContainsFunc(newer, func(id string) bool { return !slices.Contains(older, id) }) {
		return older
	}
	list := slices.DeleteFunc(slices.Clone(older), func(id string) bool { return slices.Contains(newer, id) })
	list = append(list, newer...)
	return list[max(0, len(list)-MostRecoveries):]
}
