// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// Storage holds every endpoint of etcdbackups.
type Storage struct {
	EtcdBackup *REST
	Status     *genericstore.StatusREST
}

// REST serves etcdbackups.
type REST struct {
	genericstore.GuardedStore
}

var _ rest.StandardStorage = &REST{}

// NewStorage returns the endpoints of etcdbackups. The objects are stored where optsGetter says.
// The guard checks the rights that the content of an object needs.
func NewStorage(typer runtime.ObjectTyper, optsGetter generic.RESTOptionsGetter, guard rights.Guard) (Storage, error) {
	resource := genericstore.Resource{
		Plural:   v1beta2.Resource("etcdbackups"),
		Singular: v1beta2.Resource("etcdbackup"),
		New:      func() runtime.Object { return &v1beta2.EtcdBackup{} },
		NewList:  func() runtime.Object { return &v1beta2.EtcdBackupList{} },
	}
	store, status, err := genericstore.New(resource, newStrategy(typer), newTable(clock.RealClock{}), optsGetter, guard)
	if err != nil {
		return Storage{}, err
	}
	return Storage{EtcdBackup: &REST{store}, Status: status}, nil
}
