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
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/live"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// Storage is every endpoint of etcdclusters.
type Storage struct {
	EtcdCluster *REST
	Status      *kind.StatusREST
	Scale       *kind.ScaleREST[*v1beta2.EtcdCluster]
	Health      *LookREST
	Members     *LookREST
	MoveLeader  *MoveLeaderREST
	Defrag      *OperationREST
	Restart     *OperationREST
	Recover     *RecoverREST
	Backup      *BackupREST
	Restore     *RestoreREST
	Proxy       *ProxyREST
}

// Dependencies is what the subresources need beside the objects.
type Dependencies struct {
	// Asker answers for the members of clusters.
	Asker *live.Asker
	// Backups is where backups are created.
	Backups Backups
	// Restores is where restores are created.
	Restores Restores
	// Guard asks for the rights that a request needs beside the right to its verb.
	Guard rights.Guard
	// DefaultVersion of etcd for clusters that are created without one; empty for the
	// version that this release recommends.
	DefaultVersion string
}

// REST serves etcdclusters.
type REST struct {
	kind.Guarded
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
)

// NewStorage returns the endpoints of etcdclusters, kept where optsGetter says.
func NewStorage(typer runtime.ObjectTyper, optsGetter generic.RESTOptionsGetter, needs Dependencies) (Storage, error) {
	resource := kind.Resource{
		Plural:   v1beta2.Resource("etcdclusters"),
		Singular: v1beta2.Resource("etcdcluster"),
		New:      func() runtime.Object { return &v1beta2.EtcdCluster{} },
		NewList:  func() runtime.Object { return &v1beta2.EtcdClusterList{} },
	}
	rules := newStrategy(typer, cmp.Or(needs.DefaultVersion, v1beta2.DefaultVersion))
	guarded, status, err := kind.NewStore(resource, rules, newTable(clock.RealClock{}), optsGetter, needs.Guard)
	if err != nil {
		return Storage{}, err
	}
	registerMetrics()
	store := guarded.Store
	return Storage{
		EtcdCluster: &REST{guarded},
		Status:      status,
		Scale:       newScale(store),
		Health:      newHealth(store, needs.Asker),
		Members:     newMembers(store, needs.Asker),
		MoveLeader:  &MoveLeaderREST{clusters: store, asker: needs.Asker, clock: clock.RealClock{}},
		Defrag:      newOperation(status, v1beta2.OperationDefrag, "defrag"),
		Restart:     newRestart(store, rules),
		Recover:     &RecoverREST{status: status, clock: clock.RealClock{}},
		Backup:      newBackup(store, needs.Backups, needs.Asker, needs.Guard),
		Restore:     &RestoreREST{clusters: store, backups: needs.Backups, restores: needs.Restores, guard: needs.Guard},
		Proxy:       newProxy(store, needs.Asker, needs.Guard),
	}, nil
}

// ShortNames lets users write "kubectl get etcd".
func (*REST) ShortNames() []string { return []string{"etcd"} }
