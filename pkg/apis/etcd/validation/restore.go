// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// maxRevisionBump leaves room for more revisions than any cluster will ever make.
const maxRevisionBump = 1_000_000_000_000_000

// ValidateEtcdRestore returns what is wrong with a restore that is to be created.
func ValidateEtcdRestore(restore *v1beta2.EtcdRestore) field.ErrorList {
	return bounded(validateRestore(restore))
}

func validateRestore(restore *v1beta2.EtcdRestore) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&restore.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateRestoreSpec(restore, field.NewPath("spec"))...)
}

func validateRestoreSpec(restore *v1beta2.EtcdRestore, path *field.Path) field.ErrorList {
	spec := &restore.Spec
	errs := requireClusterName(spec.EtcdCluster.Name, path.Child("etcdCluster", "name"))
	errs = append(errs, validateRestoredFrom(spec, path)...)
	if bump := spec.RevisionBump; bump != nil && (*bump < 0 || *bump > maxRevisionBump) {
		errs = append(errs, field.Invalid(path.Child("revisionBump"), *bump, "must be between 0 and 10^15; leave it out for the default"))
	}
	errs = append(errs, validateObjectName(spec.ServiceAccountName, path.Child("serviceAccountName"))...)
	errs = append(errs, validateJobPolicy(spec.Job, path.Child("job"))...)
	if spec.Decryption != nil {
		errs = append(errs, requireObjectName(spec.Decryption.AgeIdentitiesSecret, path.Child("decryption", "ageIdentitiesSecret"), "name the Secret with the identities")...)
	}
	if template, at := spec.ClusterTemplate, path.Child("clusterTemplate"); template != nil {
		errs = append(errs, validateTemplateMeta(&template.ObjectMeta, restore, at.Child("metadata"))...)
		errs = append(errs, validateClusterSpec(&template.Spec, at.Child("spec"))...)
		if template.Spec.Version != "" { // empty: the version that the backup is of
			errs = append(errs, validateVersion(template.Spec.Version, at.Child("spec", "version"))...)
		}
		if template.Spec.Bootstrap != nil {
			errs = append(errs, forbidden(at.Child("spec", "bootstrap"), "may not be set, because the cluster begins with the data of the backup; remove it"))
		}
		if size := template.Spec.Replicas; size != nil && *size == 0 && hasVolumes(&template.Spec) {
			errs = append(errs, field.Invalid(at.Child("spec", "size"), *size, "must be at least 1, because a restore has succeeded only when the cluster serves a write"))
		}
	}
	return errs
}

// validateRestoredFrom checks that there is exactly one source.
func validateRestoredFrom(spec *v1beta2.RestoreSpec, path *field.Path) field.ErrorList {
	from := restorePlace(spec.BackupStorageType, &spec.RestoreSource, path)
	if spec.Backup == nil {
		if from.storageType == "" && !anySource(&from) {
			return field.ErrorList{field.Required(path.Child("backup"), "name the EtcdBackup to restore, or give backupStorageType and the backup location")}
		}
		return validatePlace(from, path)
	}
	const one = "may not be set together with backup, which knows its place; remove one of the two"
	at := path.Child("backup")
	errs := requireObjectName(spec.Backup.Name, at.Child("name"), "name an EtcdBackup of this namespace")
	if revision := spec.Backup.Revision; revision != nil && *revision < 1 {
		errs = append(errs, field.Invalid(at.Child("revision"), *revision, "must be at least 1; leave it out for the newest good backup"))
	}
	if from.storageType != "" {
		errs = append(errs, forbidden(from.storageTypePath, one))
	}
	use := spec.Job.OnlySecretUse()
	for _, f := range []struct {
		name string
		set  bool
	}{{"labels", len(use.Labels) > 0}, {"annotations", len(use.Annotations) > 0}, {"env", len(use.Env) > 0}} {
		if f.set {
			errs = append(errs, forbidden(path.Child("job", f.name),
				"may not be set together with backup, because it decides where the Secrets of the EtcdBackup go; remove it, or set spec.job.%s of the EtcdBackup", f.name))
		}
	}
	for _, f := range from.fields() {
		if f.set {
			errs = append(errs, forbidden(path.Child(f.name), one))
		}
	}
	return errs
}

func anySource(p *place) bool {
	for _, f := range p.fields() {
		if f.set {
			return true
		}
	}
	return false
}

// validateTemplateMeta accepts a copy of a whole object's metadata where that does no
// harm, and rejects what the author would miss in the new cluster.
func validateTemplateMeta(meta *metav1.ObjectMeta, restore *v1beta2.EtcdRestore, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(meta.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(meta.Annotations, path.Child("annotations"))...)
	if meta.Name != "" && meta.Name != restore.Spec.EtcdCluster.Name {
		errs = append(errs, invalid(path.Child("name"), meta.Name, "must be left out or equal spec.etcdCluster.name, which names the new cluster"))
	}
	if meta.Namespace != "" && meta.Namespace != restore.Namespace {
		errs = append(errs, invalid(path.Child("namespace"), meta.Namespace, "must be left out: a cluster is restored in the namespace of its EtcdRestore"))
	}
	for _, unused := range []struct {
		name string
		set  bool
	}{
		{"generateName", meta.GenerateName != ""},
		{"finalizers", len(meta.Finalizers) > 0},
		{"ownerReferences", len(meta.OwnerReferences) > 0},
	} {
		if unused.set {
			errs = append(errs, forbidden(path.Child(unused.name), "is not given to the new cluster; only labels and annotations are"))
		}
	}
	return errs
}

// equalities compares durations by what they mean. An object that an earlier release stored has not the text that its
// manifest has.
var equalities = conversion.EqualitiesOrDie(
	func(a, b v1beta2.Duration) bool { return a.Duration == b.Duration },
	func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 },
	func(a, b metav1.Time) bool { return a.Equal(&b) },
)

// ValidateEtcdRestoreUpdate returns what is wrong with an update of oldRestore to
// newRestore.
func ValidateEtcdRestoreUpdate(newRestore, oldRestore *v1beta2.EtcdRestore) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&newRestore.ObjectMeta, &oldRestore.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, ratchet(newRestore, oldRestore, validateRestore)...)
	if isMeasurable(errs) && !equalities.DeepEqual(newRestore.Spec, oldRestore.Spec) {
		errs = append(errs, forbidden(field.NewPath("spec"), "may not change, because a restore happens once; make another EtcdRestore"))
	}
	return bounded(errs)
}
