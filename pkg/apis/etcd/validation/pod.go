// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// versionAnnotation on a pod holds the version that the controller gave it.
	versionAnnotation = "etcd.version"
	appLabel          = "app"
	ownLabelPrefix    = "etcd_"
)

// validatePodPolicy checks what would otherwise be found out only when the
// kube-apiserver rejects a pod, minutes later and out of the author's sight. It does
// not repeat every check of a pod.
func validatePodPolicy(pod *v1beta2.PodPolicy, path *field.Path) field.ErrorList {
	errs := validateOwnedLabels(pod.Labels, path.Child("labels"))
	errs = append(errs, validatePodAnnotations(pod.Annotations, path.Child("annotations"))...)
	errs = append(errs, validateScheduling(pod, path)...)
	errs = append(errs, validateResources(&pod.Resources, path.Child("resources"))...)
	errs = append(errs, validateEnv(pod.EtcdEnv, path.Child("etcdEnv"))...)
	errs = append(errs, validateClusterDomain(pod.ClusterDomain, path.Child("ClusterDomain"))...)
	errs = append(errs, validateObjectName(pod.PriorityClassName, path.Child("priorityClassName"))...)
	for i, ref := range pod.ImagePullSecrets {
		errs = append(errs, requireObjectName(ref.Name, path.Child("imagePullSecrets").Index(i).Child("name"), "name the Secret")...)
	}
	errs = append(errs, validateEnum(pod.ImagePullPolicy, path.Child("imagePullPolicy"),
		corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	if grace := pod.TerminationGracePeriodSeconds; grace != nil {
		errs = append(errs, validateSeconds(*grace, path.Child("terminationGracePeriodSeconds"))...)
	}
	errs = append(errs, validateSecurityContexts(pod, path)...)
	if pod.PersistentVolumeClaimSpec != nil {
		errs = append(errs, validatePVCSpec(pod.PersistentVolumeClaimSpec, path.Child("persistentVolumeClaimSpec"))...)
	}
	if policy := pod.PersistentVolumeClaimRetentionPolicy; policy != nil {
		at := path.Child("persistentVolumeClaimRetentionPolicy")
		errs = append(errs, validateEnum(policy.WhenDeleted, at.Child("whenDeleted"), v1beta2.PVCDelete, v1beta2.PVCRetain)...)
		errs = append(errs, validateEnum(policy.WhenScaled, at.Child("whenScaled"), v1beta2.PVCDelete, v1beta2.PVCRetain)...)
	}
	return errs
}

// validateOwnedLabels rejects the labels by which the controller finds its own
// objects.
func validateOwnedLabels(labels map[string]string, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(labels, path)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if key == appLabel || strings.HasPrefix(key, ownLabelPrefix) {
			errs = append(errs, forbidden(path.Key(key), `"app" and keys that begin with "etcd_" belong to the controller; choose another key`))
		}
	}
	return errs
}

func validatePodAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateAnnotations(annotations, path)
	if _, found := annotations[versionAnnotation]; found {
		errs = append(errs, forbidden(path.Key(versionAnnotation), "belongs to the controller; set spec.version instead"))
	}
	return errs
}

func validateEnv(env []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		at := path.Index(i)
		if env[i].Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "name the variable"))
		} else {
			errs = append(errs, reasons(at.Child("name"), env[i].Name, utilvalidation.IsEnvVarName(env[i].Name))...)
		}
		if why := whyFatal(env[i].Name); why != "" {
			errs = append(errs, forbidden(at.Child("name"), "is not allowed: %s; remove it", why))
		}
		// The value may be a secret, so no error repeats it.
		if strings.ContainsRune(env[i].Value, 0) {
			errs = append(errs, forbidden(at.Child("value"), "must not contain a NUL character: no process can be started with it"))
		}
		if source := env[i].ValueFrom; source != nil {
			if env[i].Value != "" {
				errs = append(errs, forbidden(at.Child("valueFrom"), "may not be set together with value; keep one of the two"))
			}
			errs = append(errs, validateEnvSource(source, at.Child("valueFrom"))...)
		}
	}
	return errs
}

func validateEnvSource(source *corev1.EnvVarSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	count := 0
	if ref := source.FieldRef; ref != nil {
		count++
		errs = append(errs, requireText(ref.FieldPath, path.Child("fieldRef", "fieldPath"), "name the field of the pod, such as status.podIP")...)
	}
	if ref := source.ResourceFieldRef; ref != nil {
		count++
		errs = append(errs, requireText(ref.Resource, path.Child("resourceFieldRef", "resource"), "name the resource, such as limits.memory")...)
		errs = append(errs, validateMeasurable(ref.Divisor, path.Child("resourceFieldRef", "divisor"))...)
	}
	if ref := source.ConfigMapKeyRef; ref != nil {
		count++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, path.Child("configMapKeyRef"))...)
	}
	if ref := source.SecretKeyRef; ref != nil {
		count++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, path.Child("secretKeyRef"))...)
	}
	if source.FileKeyRef != nil {
		count++
		errs = append(errs, forbidden(path.Child("fileKeyRef"), "is not possible, because the pod has no volume of yours; use secretKeyRef or configMapKeyRef"))
	}
	if count != 1 {
		errs = append(errs, field.Invalid(path, "", "exactly one of fieldRef, resourceFieldRef, configMapKeyRef and secretKeyRef must be set"))
	}
	return errs
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	errs := requireObjectName(name, path.Child("name"), "name the object that holds the value")
	if key == "" {
		return append(errs, field.Required(path.Child("key"), "name the key that holds the value"))
	}
	return append(errs, reasons(path.Child("key"), key, utilvalidation.IsConfigMapKey(key))...)
}

func requireText(value string, path *field.Path, what string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, what)}
	}
	return nil
}

func validateSecurityContexts(pod *v1beta2.PodPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if sc := pod.SecurityContext; sc != nil {
		at := path.Child("securityContext")
		errs = append(errs, validateID(sc.RunAsUser, at.Child("runAsUser"))...)
		errs = append(errs, validateID(sc.RunAsGroup, at.Child("runAsGroup"))...)
		errs = append(errs, validateID(sc.FSGroup, at.Child("fsGroup"))...)
		for i := range sc.SupplementalGroups {
			errs = append(errs, validateID(&sc.SupplementalGroups[i], at.Child("supplementalGroups").Index(i))...)
		}
		errs = append(errs, validateNonRoot(sc.RunAsNonRoot, sc.RunAsUser, at.Child("runAsUser"))...)
	}
	if sc := pod.ContainerSecurityContext; sc != nil {
		at := path.Child("containerSecurityContext")
		errs = append(errs, validateID(sc.RunAsUser, at.Child("runAsUser"))...)
		errs = append(errs, validateID(sc.RunAsGroup, at.Child("runAsGroup"))...)
		errs = append(errs, validateNonRoot(sc.RunAsNonRoot, sc.RunAsUser, at.Child("runAsUser"))...)
	}
	return errs
}

func validateID(id *int64, path *field.Path) field.ErrorList {
	if id == nil {
		return nil
	}
	var errs field.ErrorList
	for _, message := range utilvalidation.IsValidUserID(*id) {
		errs = append(errs, field.Invalid(path, *id, message))
	}
	return errs
}

func validateNonRoot(nonRoot *bool, user *int64, path *field.Path) field.ErrorList {
	if nonRoot != nil && *nonRoot && user != nil && *user == 0 {
		return field.ErrorList{field.Invalid(path, *user, "must not be 0 while runAsNonRoot is true, because no container would start; choose another user")}
	}
	return nil
}
