// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
)

// Storage is every endpoint of etcdbackups.
type Storage struct {
	EtcdBackup *REST
	Status     *kind.StatusREST
}

// REST serves etcdbackups.
type REST struct {
	*genericregistry.Store
}

var _ rest.StandardStorage = &REST{}

// NewStorage returns the endpoints of etcdbackups, kept where optsGetter says.
func NewStorage(typer runtime.ObjectTyper, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	resource := kind.Resource{
		Plural:   v1beta2.Resource("etcdbackups"),
		Singular: v1beta2.Resource("etcdbackup"),
		New:      func() runtime.Object { return &v1beta2.EtcdBackup{} },
		NewList:  func() runtime.Object { return &v1beta2.EtcdBackupList{} },
	}
	store, status, err := kind.NewStore(resource, newStrategy(typer), newTable(clock.RealClock{}), optsGetter)
	if err != nil {
		return Storage{}, err
	}
	return Storage{EtcdBackup: &REST{Store: store}, Status: status}, nil
}
