// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

func TestMain(m *testing.M) { registrytest.Main(m) }

func valid(name string) *v1beta2.EtcdBackup {
	backup := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta2.BackupSpec{
			EtcdCluster:  &v1beta2.EtcdClusterRef{Name: "example"},
			StorageType:  v1beta2.BackupStorageTypeS3,
			BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/key", AWSSecret: "aws"}},
		},
	}
	v1beta2.SetObjectDefaults_EtcdBackup(backup)
	return backup
}

func TestConformance(t *testing.T) {
	registrytest.Conformance[*v1beta2.EtcdBackup]{
		NewStore: func(typer *runtime.Scheme, options generic.RESTOptionsGetter) (*genericregistry.Store, error) {
			storage, err := NewStorage(typer, options, rights.Guard{})
			if err != nil {
				return nil, err
			}
			return storage.EtcdBackup.Store, nil
		},
		Valid: valid,
		Change: func(backup *v1beta2.EtcdBackup) {
			backup.Spec.BackupPolicy = &v1beta2.BackupPolicy{TimeoutInSecond: 60}
		},
		Corrupt: func(backup *v1beta2.EtcdBackup) { backup.Spec.StorageType = "Tape" },
		Match:   []fields.Set{{v1beta2.FieldSpecStorageType: "S3"}, {v1beta2.FieldStatusPhase: ""}},
		Miss:    []fields.Set{{v1beta2.FieldSpecStorageType: "GCS"}, {v1beta2.FieldStatusPhase: "Running"}},
	}.Run(t)
}
