// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxDigits and maxBits are beyond any resource that exists.
	maxDigits = 30
	maxBits   = 128

	outOfRange = "must be a quantity that something can have, such as 8Gi"
)

// hasExactValue says whether a quantity may be compared. A quantity such as 1e999999999
// is parsed at once, and comparing it writes out a billion digits.
func hasExactValue(quantity resource.Quantity) bool {
	copied := quantity.DeepCopy()
	decimal := copied.AsDec()
	return decimal.Scale() >= -maxDigits && decimal.UnscaledBig().BitLen() <= maxBits
}

func validateMeasurable(quantity resource.Quantity, path *field.Path) field.ErrorList {
	if hasExactValue(quantity) {
		return nil
	}
	return field.ErrorList{invalid(path, quantity.String(), outOfRange)}
}

// isMeasurable says whether errs has no error about a quantity that may not be compared.
func isMeasurable(errs field.ErrorList) bool {
	return !slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Detail == outOfRange })
}

func validateResources(resources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	errs := validateResourceList(resources.Limits, path.Child("limits"))
	errs = append(errs, validateResourceList(resources.Requests, path.Child("requests"))...)
	if len(resources.Claims) > 0 {
		errs = append(errs, forbidden(path.Child("claims"), "is not possible, because the pods have no resource claims"))
	}
	if !isMeasurable(errs) {
		return errs
	}
	for _, name := range slices.Sorted(maps.Keys(resources.Requests)) {
		request := resources.Requests[name]
		at := path.Child("requests").Key(string(name))
		limit, limited := resources.Limits[name]
		switch {
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, invalid(at, request.String(), "must not be more than the limit of %s", limit.String()))
		case !mayOvercommit(name) && request.Cmp(limit) != 0:
			errs = append(errs, invalid(at, request.String(), "must have an equal limit, because %s cannot be overcommitted", name))
		}
	}
	return errs
}

func validateResourceList(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at := path.Key(string(name))
		errs = append(errs, validateResourceName(string(name), at)...)
		quantity := list[name]
		errs = append(errs, validateMeasurable(quantity, at)...)
		if quantity.Sign() < 0 {
			errs = append(errs, invalid(at, quantity.String(), "must not be negative"))
		}
	}
	return errs
}

// validateResourceName takes what a container can ask for: the resources of every
// node, huge pages, and extended ones, whose names have a domain.
func validateResourceName(name string, path *field.Path) field.ErrorList {
	if mayOvercommit(corev1.ResourceName(name)) || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
		return nil
	}
	if !strings.Contains(name, "/") {
		return field.ErrorList{invalid(path, name, "must be cpu, memory, ephemeral-storage, hugepages-<size> or a name with a domain, such as example.com/device")}
	}
	return metav1validation.ValidateLabelName(name, path)
}

func mayOvercommit(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	default:
		return false
	}
}

// validatePVCSpec checks the PVC that each member gets one of.
func validatePVCSpec(pvc *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	errs := validateAccessModes(pvc.AccessModes, path.Child("accessModes"))
	errs = append(errs, validateStorageSize(&pvc.Resources, path.Child("resources"))...)
	errs = append(errs, validateSelector(pvc.Selector, path.Child("selector"))...)
	if pvc.StorageClassName != nil {
		errs = append(errs, validateObjectName(*pvc.StorageClassName, path.Child("storageClassName"))...)
	}
	if pvc.VolumeAttributesClassName != nil {
		errs = append(errs, validateObjectName(*pvc.VolumeAttributesClassName, path.Child("volumeAttributesClassName"))...)
	}
	if mode := pvc.VolumeMode; mode != nil && *mode != corev1.PersistentVolumeFilesystem {
		errs = append(errs, field.NotSupported(path.Child("volumeMode"), *mode, []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem}))
	}
	if pvc.VolumeName != "" {
		errs = append(errs, forbidden(path.Child("volumeName"), "is not possible, because every member has a PVC of its own; choose volumes by selector or storageClassName"))
	}
	const empty = "is not possible, because a member must start on an empty volume; make an EtcdRestore to start from a backup"
	if pvc.DataSource != nil {
		errs = append(errs, forbidden(path.Child("dataSource"), empty))
	}
	if pvc.DataSourceRef != nil {
		errs = append(errs, forbidden(path.Child("dataSourceRef"), empty))
	}
	return errs
}

func validateAccessModes(modes []corev1.PersistentVolumeAccessMode, path *field.Path) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(path, "name at least one access mode, such as ReadWriteOnce")}
	}
	var errs field.ErrorList
	for i, mode := range modes {
		errs = append(errs, validateEnum(mode, path.Index(i), corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadWriteMany, corev1.ReadOnlyMany)...)
	}
	if !slices.ContainsFunc(modes, func(mode corev1.PersistentVolumeAccessMode) bool { return mode != corev1.ReadOnlyMany }) {
		errs = append(errs, forbidden(path, "must contain a mode that allows writing, such as ReadWriteOnce"))
	}
	if len(modes) > 1 && slices.Contains(modes, corev1.ReadWriteOncePod) {
		errs = append(errs, forbidden(path, "ReadWriteOncePod may not be combined with another mode"))
	}
	return errs
}

func validateStorageSize(resources *corev1.VolumeResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name string
		list corev1.ResourceList
	}{{"requests", resources.Requests}, {"limits", resources.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.list)) {
			errs = append(errs, validateMeasurable(list.list[name], path.Child(list.name).Key(string(name)))...)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	at := path.Child("requests").Key(string(corev1.ResourceStorage))
	request, found := resources.Requests[corev1.ResourceStorage]
	if !found {
		return field.ErrorList{field.Required(at, "say how large the volume of a member is, such as 10Gi")}
	}
	if request.Sign() <= 0 {
		return field.ErrorList{invalid(at, request.String(), "must be more than 0, such as 10Gi")}
	}
	if limit, limited := resources.Limits[corev1.ResourceStorage]; limited && request.Cmp(limit) > 0 {
		return field.ErrorList{invalid(at, request.String(), "must not be more than the limit of %s", limit.String())}
	}
	return nil
}
