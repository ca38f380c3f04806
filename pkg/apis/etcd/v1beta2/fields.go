// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// Fields that a list or a watch can be narrowed by, beside metadata.name and
// metadata.namespace.
const (
	FieldSpecVersion     = "spec.version"
	FieldSpecStorageType = "spec.storageType"
	FieldStatusPhase     = "status.phase"
)

var metadataFields = []string{"metadata.name", "metadata.namespace"}

func addFieldLabels(scheme *runtime.Scheme) error {
	for kind, own := range map[string][]string{
		"EtcdCluster": {FieldSpecVersion, FieldStatusPhase},
		"EtcdBackup":  {FieldSpecStorageType, FieldStatusPhase},
		"EtcdRestore": {FieldStatusPhase},
	} {
		allowed := slices.Concat(metadataFields, own)
		err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind(kind),
			func(label, value string) (string, string, error) {
				if slices.Contains(allowed, label) {
					return label, value, nil
				}
				return "", "", fmt.Errorf("field label %q is not supported for %s; use one of %s", label, kind, strings.Join(allowed, ", "))
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// SelectableFields returns the fields of c that a field selector can name,
// without the metadata ones.
func (c *EtcdCluster) SelectableFields() fields.Set {
	return fields.Set{FieldSpecVersion: c.Spec.Version, FieldStatusPhase: string(c.Status.Phase)}
}

// SelectableFields returns the fields of b that a field selector can name,
// without the metadata ones.
func (b *EtcdBackup) SelectableFields() fields.Set {
	return fields.Set{FieldSpecStorageType: string(b.Spec.StorageType), FieldStatusPhase: string(b.Status.Phase)}
}

// SelectableFields returns the fields of r that a field selector can name,
// without the metadata ones.
func (r *EtcdRestore) SelectableFields() fields.Set {
	return fields.Set{FieldStatusPhase: string(r.Status.Phase)}
}
