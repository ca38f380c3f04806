// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

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

func valid(name string) *v1beta2.EtcdRestore {
	restore := &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta2.RestoreSpec{
			EtcdCluster:       v1beta2.EtcdClusterRef{Name: "example"},
			BackupStorageType: v1beta2.BackupStorageTypeS3,
			RestoreSource:     v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/key", AWSSecret: "aws"}},
		},
	}
	v1beta2.SetObjectDefaults_EtcdRestore(restore)
	return restore
}

func TestConformance(t *testing.T) {
	registrytest.Conformance[*v1beta2.EtcdRestore]{
		NewStore: func(typer *runtime.Scheme, options generic.RESTOptionsGetter) (*genericregistry.Store, error) {
			storage, err := NewStorage(typer, options, rights.Guard{})
			if err != nil {
				return nil, err
			}
			return storage.EtcdRestore.Store, nil
		},
		Valid:   valid,
		Change:  func(restore *v1beta2.EtcdRestore) { restore.Labels = map[string]string{"changed": "true"} },
		Corrupt: func(restore *v1beta2.EtcdRestore) { restore.Spec.BackupStorageType = "Tape" },
		Match:   []fields.Set{{v1beta2.FieldStatusPhase: ""}},
		Miss:    []fields.Set{{v1beta2.FieldStatusPhase: "Failed"}},
	}.Run(t)
}
