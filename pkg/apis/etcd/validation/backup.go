// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ValidateEtcdBackup returns what is wrong with a backup that is to be created.
func ValidateEtcdBackup(backup *v1beta2.EtcdBackup) field.ErrorList {
	return bounded(validateBackup(backup))
}

func validateBackup(backup *v1beta2.EtcdBackup) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&backup.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateBackupSpec(&backup.Spec, field.NewPath("spec"))...)
}

func validateBackupSpec(spec *v1beta2.BackupSpec, path *field.Path) field.ErrorList {
	errs := validateBackedUp(spec, path)
	errs = append(errs, validatePlace(backupPlace(spec.StorageType, &spec.BackupSource, path), path)...)
	errs = append(errs, validateTreatment(spec.Compression, spec.Encryption, spec.Verify, path)...)
	errs = append(errs, validateObjectName(spec.ServiceAccountName, path.Child("serviceAccountName"))...)
	errs = append(errs, validateJobPolicy(spec.Job, path.Child("job"))...)
	errs = append(errs, validateKeeping(spec, path)...)
	if spec.BackupPolicy != nil {
		errs = append(errs, validateBackupPolicy(spec.BackupPolicy, path.Child("backupPolicy"))...)
	}
	return errs
}

// validateBackedUp checks what says which cluster is backed up.
func validateBackedUp(spec *v1beta2.BackupSpec, path *field.Path) field.ErrorList {
	errs := validateObjectName(spec.ClientTLSSecret, path.Child("clientTLSSecret"))
	switch {
	case spec.EtcdCluster == nil && len(spec.EtcdEndpoints) == 0:
		errs = append(errs, field.Required(path.Child("etcdCluster"), "name the EtcdCluster to back up, or give etcdEndpoints"))
	case spec.EtcdCluster != nil && len(spec.EtcdEndpoints) > 0:
		errs = append(errs, forbidden(path.Child("etcdEndpoints"), "may not be set together with etcdCluster; remove one of the two"))
	}
	if spec.EtcdCluster != nil {
		errs = append(errs, requireClusterName(spec.EtcdCluster.Name, path.Child("etcdCluster", "name"))...)
		if spec.ClientTLSSecret != "" {
			errs = append(errs, forbidden(path.Child("clientTLSSecret"), "may not be set together with etcdCluster, because the certificate comes from the cluster; remove it"))
		}
	}
	for i, endpoint := range spec.EtcdEndpoints {
		errs = append(errs, validateEndpoint(endpoint, path.Child("etcdEndpoints").Index(i),
			endpointRules{portRequired: true, example: "http://example-client:2379"})...)
	}
	return errs
}

func requireClusterName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "name an EtcdCluster of this namespace")}
	}
	return reasons(path, name, clusterNameMessages(name, false))
}

func validateBackupPolicy(policy *v1beta2.BackupPolicy, path *field.Path) field.ErrorList {
	errs := validateSeconds(policy.TimeoutInSecond, path.Child("timeoutInSecond"))
	errs = append(errs, validateSeconds(policy.BackupIntervalInSecond, path.Child("backupIntervalInSecond"))...)
	if policy.MaxBackups < 0 {
		errs = append(errs, field.Invalid(path.Child("maxBackups"), policy.MaxBackups, "must not be negative; 0 means no limit"))
	}
	if policy.Schedule != "" && policy.BackupIntervalInSecond != 0 {
		errs = append(errs, forbidden(path.Child("schedule"), "may not be set together with backupIntervalInSecond; remove one of the two"))
	}
	errs = append(errs, validateSchedule(policy.Schedule, path.Child("schedule"))...)
	errs = append(errs, validateTimeZone(policy.TimeZone, path.Child("timeZone"))...)
	return append(errs, validateMaxAge(policy.MaxAge, path.Child("maxAge"))...)
}

// ValidateEtcdBackupUpdate returns what is wrong with an update of oldBackup to
// newBackup.
func ValidateEtcdBackupUpdate(newBackup, oldBackup *v1beta2.EtcdBackup) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&newBackup.ObjectMeta, &oldBackup.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, ratchet(newBackup, oldBackup, validateBackup)...)
	return bounded(append(errs, validateBackupChange(newBackup, oldBackup, field.NewPath("spec"))...))
}

// validateBackupChange lets credentials, policy and treatment change. What a one-shot
// backup is of, and where it is, stays: its status tells of that backup. A periodic
// one stays with its cluster, because its history would count as that of the other cluster,
// and its retention would delete another's backups.
func validateBackupChange(newBackup, oldBackup *v1beta2.EtcdBackup, path *field.Path) field.ErrorList {
	const another = "may not change: %s; make another EtcdBackup"
	var errs field.ErrorList
	newSpec, oldSpec := &newBackup.Spec, &oldBackup.Spec
	wasPeriodic := oldSpec.IsPeriodic()
	switch isPeriodic := newSpec.IsPeriodic(); {
	case wasPeriodic && !isPeriodic:
		errs = append(errs, forbidden(path.Child("backupPolicy"), "a periodic backup cannot become a single one; set suspend to stop it, or make another EtcdBackup"))
	case !wasPeriodic && isPeriodic:
		errs = append(errs, forbidden(path.Child("backupPolicy"), another, "a single backup cannot become periodic"))
	}
	if namesAnotherCluster(newBackup, oldBackup) || !wasPeriodic && clusterName(newSpec) != clusterName(oldSpec) {
		name := "etcdCluster"
		if newSpec.EtcdCluster == nil && oldSpec.EtcdCluster == nil {
			name = "etcdEndpoints"
		}
		errs = append(errs, forbidden(path.Child(name), another, "the backups would be of different clusters"))
	}
	if wasPeriodic {
		return errs
	}
	const made = "the status is about the backup that was made"
	if !slices.Equal(newSpec.EtcdEndpoints, oldSpec.EtcdEndpoints) {
		errs = append(errs, forbidden(path.Child("etcdEndpoints"), another, made))
	}
	if newSpec.StorageType != oldSpec.StorageType {
		errs = append(errs, forbidden(path.Child("storageType"), another, made))
		return errs
	}
	oldAt, name := location(&oldSpec.BackupSource)
	if newAt, _ := location(&newSpec.BackupSource); newAt != oldAt {
		errs = append(errs, forbidden(path.Child(name), another, made))
	}
	return errs
}

// namesAnotherCluster is true if the old and the new spec each name a cluster, by its name or by the endpoints of its client
// Service, and not the same one. Other endpoints name none: they may be of the same cluster.
func namesAnotherCluster(newBackup, oldBackup *v1beta2.EtcdBackup) bool {
	was, is := oldBackup.Spec.ClusterIn(oldBackup.Namespace), newBackup.Spec.ClusterIn(newBackup.Namespace)
	return oldBackup.Spec.IsPeriodic() && was != "" && is != "" && was != is
}

func clusterName(spec *v1beta2.BackupSpec) string {
	if spec.EtcdCluster == nil {
		return ""
	}
	return spec.EtcdCluster.Name
}

// location identifies the place of a backup, without what it takes to get there, and
// names its field.
func location(source *v1beta2.BackupSource) (at [3]string, name string) {
	switch {
	case source.S3 != nil:
		return [3]string{source.S3.Endpoint, source.S3.Region, source.S3.Path}, "s3"
	case source.ABS != nil:
		return [3]string{source.ABS.Endpoint, "", source.ABS.Path}, "abs"
	case source.GCS != nil:
		return [3]string{source.GCS.Endpoint, "", source.GCS.Path}, "gcs"
	case source.OSS != nil:
		return [3]string{source.OSS.Endpoint, "", source.OSS.Path}, "oss"
	case source.PersistentVolumeClaim != nil:
		return [3]string{source.PersistentVolumeClaim.ClaimName, "", source.PersistentVolumeClaim.Path}, "persistentVolumeClaim"
	}
	return at, "storageType"
}
