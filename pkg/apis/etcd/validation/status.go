// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// The status is the controller's, so that only what would break a reader of it is
// rejected: list keys that are not unique, values of no meaning, negative numbers.

// ValidateEtcdClusterStatusUpdate returns what is wrong with a new status.
func ValidateEtcdClusterStatusUpdate(newCluster, oldCluster *v1beta2.EtcdCluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&newCluster.ObjectMeta, &oldCluster.ObjectMeta, field.NewPath("metadata"))
	return bounded(append(errs, ratchet(&newCluster.Status, &oldCluster.Status, validateClusterStatus)...))
}

func validateClusterStatus(status *v1beta2.ClusterStatus) field.ErrorList {
	path := field.NewPath("status")
	errs := validateEnum(status.Phase, path.Child("phase"),
		v1beta2.ClusterPhaseCreating, v1beta2.ClusterPhaseRunning, v1beta2.ClusterPhaseFailed, v1beta2.ClusterPhaseHibernated)
	errs = append(errs, notNegative(path, []count{
		{"size", int64(status.Replicas)},
		{"clientPort", int64(status.ClientPort)},
		{"observedGeneration", status.ObservedGeneration},
		{"dbSize", status.DBSize},
	})...)
	errs = append(errs, validateClusterConditions(status.Conditions, path.Child("conditions"))...)
	seen := map[string]bool{}
	for i := range status.MemberStatuses {
		member, at := &status.MemberStatuses[i], path.Child("memberStatuses").Index(i)
		if member.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "is the key of the list"))
		}
		if seen[member.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), member.Name))
		}
		seen[member.Name] = true
		errs = append(errs, validateEnum(member.Role, at.Child("role"),
			v1beta2.MemberRoleLeader, v1beta2.MemberRoleFollower, v1beta2.MemberRoleLearner, v1beta2.MemberRolePending)...)
		errs = append(errs, validateConditionStatus(member.Healthy, at.Child("healthy"))...)
		errs = append(errs, notNegative(at, []count{{"dbSize", member.DBSize}, {"raftLag", member.RaftLag}})...)
	}
	return append(errs, validateOperation(status.Operation, path.Child("operation"))...)
}

func validateOperation(operation *v1beta2.ClusterOperation, path *field.Path) field.ErrorList {
	if operation == nil {
		return nil
	}
	errs := validateEnum(operation.Type, path.Child("type"), v1beta2.OperationDefrag, v1beta2.OperationRestart, v1beta2.OperationReplace)
	errs = append(errs, validateEnum(operation.Phase, path.Child("phase"),
		v1beta2.OperationPending, v1beta2.OperationRunning, v1beta2.OperationSucceeded, v1beta2.OperationFailed)...)
	seen := map[string]bool{}
	for i := range operation.Results {
		result, at := &operation.Results[i], path.Child("results").Index(i)
		if result.Member == "" {
			errs = append(errs, field.Required(at.Child("member"), "is the key of the list"))
		}
		if seen[result.Member] {
			errs = append(errs, field.Duplicate(at.Child("member"), result.Member))
		}
		seen[result.Member] = true
		errs = append(errs, validateEnum(result.State, at.Child("state"),
			v1beta2.OperationRunning, v1beta2.OperationSucceeded, v1beta2.OperationFailed)...)
		errs = append(errs, notNegative(at, []count{{"dbSizeBefore", result.DBSizeBefore}, {"dbSizeAfter", result.DBSizeAfter}})...)
	}
	return errs
}

func validateClusterConditions(conditions []v1beta2.ClusterCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[v1beta2.ClusterConditionType]bool{}
	for i := range conditions {
		condition, at := &conditions[i], path.Index(i)
		if condition.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), "is the key of the list"))
		}
		if seen[condition.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), condition.Type))
		}
		seen[condition.Type] = true
		if condition.Status == "" {
			errs = append(errs, field.Required(at.Child("status"), "must be True, False or Unknown"))
		}
		errs = append(errs, validateConditionStatus(condition.Status, at.Child("status"))...)
		errs = append(errs, validateTime(condition.LastUpdateTime, at.Child("lastUpdateTime"))...)
		errs = append(errs, validateTime(condition.LastTransitionTime, at.Child("lastTransitionTime"))...)
	}
	return errs
}

func validateConditionStatus(status corev1.ConditionStatus, path *field.Path) field.ErrorList {
	return validateEnum(status, path, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)
}

func validateTime(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return field.ErrorList{invalid(path, value, "must be a time in the form of RFC 3339")}
	}
	return nil
}

// count is a field that is never negative.
type count struct {
	name  string
	value int64
}

func notNegative(path *field.Path, counts []count) field.ErrorList {
	var errs field.ErrorList
	for _, c := range counts {
		if c.value < 0 {
			errs = append(errs, field.Invalid(path.Child(c.name), c.value, "must not be negative"))
		}
	}
	return errs
}

// ValidateEtcdBackupStatusUpdate returns what is wrong with a new status.
func ValidateEtcdBackupStatusUpdate(newBackup, oldBackup *v1beta2.EtcdBackup) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&newBackup.ObjectMeta, &oldBackup.ObjectMeta, field.NewPath("metadata"))
	return bounded(append(errs, ratchet(&newBackup.Status, &oldBackup.Status, validateBackupStatus)...))
}

func validateBackupStatus(status *v1beta2.BackupStatus) field.ErrorList {
	path := field.NewPath("status")
	errs := validateEnum(status.Phase, path.Child("phase"),
		v1beta2.BackupPhasePending, v1beta2.BackupPhaseRunning, v1beta2.BackupPhaseSucceeded, v1beta2.BackupPhaseFailed)
	errs = append(errs, notNegative(path, []count{
		{"etcdRevision", status.EtcdRevision},
		{"observedGeneration", status.ObservedGeneration},
		{"size", status.SnapshotSize},
		{"storedSize", status.StoredSize},
		{"attempts", int64(status.Attempts)},
	})...)
	errs = append(errs, validateProgress(status.Progress, path.Child("progress"))...)
	return append(errs, validateConditions(status.Conditions, path.Child("conditions"))...)
}

// ValidateEtcdRestoreStatusUpdate returns what is wrong with a new status.
func ValidateEtcdRestoreStatusUpdate(newRestore, oldRestore *v1beta2.EtcdRestore) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&newRestore.ObjectMeta, &oldRestore.ObjectMeta, field.NewPath("metadata"))
	return bounded(append(errs, ratchet(&newRestore.Status, &oldRestore.Status, validateRestoreStatus)...))
}

func validateRestoreStatus(status *v1beta2.RestoreStatus) field.ErrorList {
	path := field.NewPath("status")
	errs := validateEnum(status.Phase, path.Child("phase"),
		v1beta2.RestorePhaseVerifying, v1beta2.RestorePhaseRestoring, v1beta2.RestorePhaseStarting, v1beta2.RestorePhaseSucceeded, v1beta2.RestorePhaseFailed)
	errs = append(errs, notNegative(path, []count{
		{"observedGeneration", status.ObservedGeneration},
		{"revision", status.Revision},
	})...)
	errs = append(errs, validateProgress(status.Progress, path.Child("progress"))...)
	return append(errs, validateConditions(status.Conditions, path.Child("conditions"))...)
}

func validateProgress(progress *v1beta2.TransferProgress, path *field.Path) field.ErrorList {
	if progress == nil {
		return nil
	}
	return notNegative(path, []count{{"bytes", progress.Bytes}, {"totalBytes", progress.TotalBytes}})
}

func validateConditions(conditions []metav1.Condition, path *field.Path) field.ErrorList {
	return metav1validation.ValidateConditions(conditions, path)
}
