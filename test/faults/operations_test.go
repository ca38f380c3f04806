// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
)

func TestManifestsAreValid(t *testing.T) {
	for _, c := range Matrix() {
		var object v1beta2.EtcdCluster
		if err := yaml.UnmarshalStrict([]byte(manifest(c)), &object); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		object.Namespace = "faults"
		v1beta2.SetObjectDefaults_EtcdCluster(&object)
		if errs := validation.ValidateEtcdCluster(&object); len(errs) > 0 {
			t.Errorf("%s: %v", c, errs)
		}
		if secured := object.Spec.TLS != nil && object.Spec.TLS.Auto != nil; secured != operations[c.Operation].secured {
			t.Errorf("%s: TLS is %+v, and clients prove themselves: %v", c, object.Spec.TLS, operations[c.Operation].secured)
		}
	}
	var backup v1beta2.EtcdBackup
	if err := yaml.UnmarshalStrict([]byte(backupObject), &backup); err != nil {
		t.Fatal(err)
	}
	backup.Namespace = "faults"
	v1beta2.SetObjectDefaults_EtcdBackup(&backup)
	if errs := validation.ValidateEtcdBackup(&backup); len(errs) > 0 {
		t.Errorf("the backup: %v", errs)
	}
	var restored v1beta2.EtcdRestore
	if err := yaml.UnmarshalStrict([]byte(restoreObject), &restored); err != nil {
		t.Fatal(err)
	}
	restored.Namespace = "faults"
	v1beta2.SetObjectDefaults_EtcdRestore(&restored)
	if errs := validation.ValidateEtcdRestore(&restored); len(errs) > 0 {
		t.Errorf("the restore: %v", errs)
	}
}
