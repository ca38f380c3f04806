// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// Storage holds every endpoint of etcdclusters.
type Storage struct {
	EtcdCluster *REST
	Status      *genericstore.StatusREST
	Scale       *ScaleREST
	Health      *HealthREST
	Members     *MembersREST
	MoveLeader  *MoveLeaderREST
	Defrag      *DefragREST
	Restart     *RestartREST
	Replace     *ReplaceREST
	Recover     *RecoverREST
	Backup      *BackupREST
	Restore     *RestoreREST
	Proxy       *ProxyREST
}

// Dependencies are what the subresources need in addition to the stored EtcdClusters.
type Dependencies struct {
	// Prober reads the state of members.
	Prober *prober.Prober
	// Backups stores EtcdBackups.
	Backups Backups
	// Restores stores EtcdRestores.
	Restores Restores
	// Guard checks the rights that a request needs in addition to the right to its verb.
	Guard rights.Guard
	// DefaultVersion is the etcd version of clusters that are created without spec.version.
	// Empty means the version that this release recommends.
	DefaultVersion string
}

// REST serves etcdclusters.
type REST struct {
	genericstore.GuardedStore
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
)

// NewStorage returns the endpoints of etcdclusters. The objects are stored where optsGetter
// says.
func NewStorage(typer runtime.ObjectTyper, optsGetter generic.RESTOptionsGetter, dependencies Dependencies) (Storage, error) {
	resource := genericstore.Resource{
		Plural:   v1beta2.Resource("etcdclusters"),
		Singular: v1beta2.Resource("etcdcluster"),
		New:      func() runtime.Object { return &v1beta2.EtcdCluster{} },
		NewList:  func() runtime.Object { return &v1beta2.EtcdClusterList{} },
	}
	main := newStrategy(typer, cmp.Or(dependencies.DefaultVersion, v1beta2.DefaultVersion))
	guarded, status, err := genericstore.New(resource, main, newTable(clock.RealClock{}), optsGetter, dependencies.Guard)
	if err != nil {
		return Storage{}, err
	}
	registerMetrics()
	store := guarded.Store
	return Storage{
		EtcdCluster: &REST{guarded},
		Status:      status,
		Scale:       &ScaleREST{store: store},
		Health:      newHealthREST(store, dependencies.Prober),
		Members:     newMembersREST(store, dependencies.Prober),
		MoveLeader:  newMoveLeaderREST(store, dependencies.Prober),
		Defrag:      &DefragREST{newOperationREST("defrag", status)},
		Restart:     newRestartREST(store, main),
		Replace:     &ReplaceREST{newOperationREST("replace", status)},
		Recover:     newRecoverREST(status),
		Backup:      newBackupREST(store, dependencies),
		Restore:     newRestoreREST(store, dependencies),
		Proxy:       newProxyREST(store, dependencies.Prober, dependencies.Guard),
	}, nil
}

// ShortNames allows "kubectl get etcd".
func (*REST) ShortNames() []string { return []string{"etcd"} }
