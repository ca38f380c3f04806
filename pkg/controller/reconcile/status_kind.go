// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// StatusKind is what a write of a status must know of the kind of the object.
type StatusKind[S any] struct {
	name string
	// fit leaves out what the API rejects; see package validation.
	fit func(full, current S) (S, field.ErrorList)
	// shorten, if not nil, takes out of a status that is too large what other programs choose the length of, and nothing depends on.
	shorten func(*S)
	// reduce returns the current status with the conditions of the full one.
	reduce func(full, current S) S
	// report puts the condition StatusIncomplete into a status.
	report func(status *S, current S, generation int64, now time.Time, message string)
	size   func(*S) int
	// most is how large the status is at most, in bytes.
	most int
}

const (
	// maxClusterStatus leaves room for the statuses of all EtcdClusters that a namespace may have. What members report
	// is in it, and tenants run them.
	maxClusterStatus = 64 << 10
	// maxStatus is for the others, whose history is theirs. The etcd behind the API takes 1.5 MiB.
	maxStatus = 512 << 10
)

// The kinds of this group.
var (
	ClusterStatus = StatusKind[v1beta2.ClusterStatus]{
		name: "EtcdCluster", fit: validation.FitClusterStatus, size: (*v1beta2.ClusterStatus).Size, most: maxClusterStatus,
		shorten: func(status *v1beta2.ClusterStatus) {
			for i := range status.MemberStatuses {
				m := &status.MemberStatuses[i]
				m.Message, m.Alarms = "", firstOfEachType(m.Alarms)
			}
		},
		reduce: func(full, current v1beta2.ClusterStatus) v1beta2.ClusterStatus {
			reduced := *current.DeepCopy()
			reduced.Conditions, reduced.Phase, reduced.Reason, reduced.BlockedBy = full.Conditions, full.Phase, full.Reason, full.BlockedBy
			reduced.ObservedGeneration, reduced.Tolerance = full.ObservedGeneration, full.Tolerance
			return reduced
		},
		report: func(status *v1beta2.ClusterStatus, current v1beta2.ClusterStatus, generation int64, now time.Time, message string) {
			reportIncomplete(&status.Conditions, current.Conditions, generation, now, message)
		},
	}
	BackupStatus = StatusKind[v1beta2.BackupStatus]{
		name: "EtcdBackup", fit: validation.FitBackupStatus, size: (*v1beta2.BackupStatus).Size, most: maxStatus,
		reduce: func(full, current v1beta2.BackupStatus) v1beta2.BackupStatus {
			reduced := *current.DeepCopy()
			reduced.Conditions, reduced.Phase, reduced.ObservedGeneration = full.Conditions, full.Phase, full.ObservedGeneration
			return reduced
		},
		report: func(status *v1beta2.BackupStatus, current v1beta2.BackupStatus, generation int64, now time.Time, message string) {
			setIncomplete(&status.Conditions, current.Conditions, generation, now, message)
		},
	}
	RestoreStatus = StatusKind[v1beta2.RestoreStatus]{
		name: "EtcdRestore", fit: validation.FitRestoreStatus, size: (*v1beta2.RestoreStatus).Size, most: maxStatus,
		reduce: func(full, current v1beta2.RestoreStatus) v1beta2.RestoreStatus {
			reduced := *current.DeepCopy()
			reduced.Conditions, reduced.Phase, reduced.ObservedGeneration = full.Conditions, full.Phase, full.ObservedGeneration
			return reduced
		},
		report: func(status *v1beta2.RestoreStatus, current v1beta2.RestoreStatus, generation int64, now time.Time, message string) {
			setIncomplete(&status.Conditions, current.Conditions, generation, now, message)
		},
	}
)

// firstOfEachType returns alarms of different types: one says already that the data differs, or that there is no space.
func firstOfEachType(alarms []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(alarms, func(alarm string) bool {
		alarmType, _, _ := strings.Cut(alarm, " ")
		more := seen[alarmType]
		seen[alarmType] = true
		return more
	})
}

// setIncomplete sets the condition, with the time of the current one if there is one.
func setIncomplete(conditions *[]metav1.Condition, current []metav1.Condition, generation int64, now time.Time, message string) {
	incomplete := metav1.Condition{
		Type: v1beta2.ConditionStatusIncomplete, Status: metav1.ConditionTrue, Reason: v1beta2.ReasonFieldsLeftOut, Message: message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if before := meta.FindStatusCondition(current, incomplete.Type); before != nil {
		incomplete.LastTransitionTime = before.LastTransitionTime
	}
	meta.SetStatusCondition(conditions, incomplete)
}

// reportIncomplete is setIncomplete for the conditions of an EtcdCluster.
func reportIncomplete(conditions *[]v1beta2.ClusterCondition, current []v1beta2.ClusterCondition, generation int64, now time.Time, message string) {
	is := func(c v1beta2.ClusterCondition) bool { return c.Type == v1beta2.ClusterConditionStatusIncomplete }
	at := now.UTC().Format(time.RFC3339)
	incomplete := v1beta2.ClusterCondition{
		Type: v1beta2.ClusterConditionStatusIncomplete, Status: corev1.ConditionTrue, Reason: v1beta2.ReasonFieldsLeftOut, Message: message,
		ObservedGeneration: generation, LastTransitionTime: at, LastUpdateTime: at,
	}
	if i := slices.IndexFunc(current, is); i >= 0 {
		incomplete.LastTransitionTime = current[i].LastTransitionTime
		if current[i].Message == message {
			incomplete.LastUpdateTime = current[i].LastUpdateTime
		}
	}
	*conditions = append(slices.DeleteFunc(*conditions, is), incomplete)
}

// maxNamed is how many fields a message names.
const maxNamed = 5

// describeLeftOut is the message of the condition StatusIncomplete.
func describeLeftOut(leftOut field.ErrorList) string {
	var named []string
	for _, err := range leftOut {
		if text := err.Error(); !slices.Contains(named, text) {
			named = append(named, text)
		}
	}
	more := ""
	if left := len(named) - maxNamed; left > 0 {
		named, more = named[:maxNamed], fmt.Sprintf("; and %d more", left)
	}
	return untrusted.Text("The status lacks what was observed and may not be in it: "+strings.Join(named, "; ")+more) +
		" Change what the fields repeat, such as what a member reports, or upgrade the API server to the version of the controller. If neither helps, report a defect."
}
