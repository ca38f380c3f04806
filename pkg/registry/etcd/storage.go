// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/backup"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/live"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/restore"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// Dependencies is what the endpoints need beside the objects.
type Dependencies struct {
	// Asker answers for the members of clusters.
	Asker *live.Asker
	// Admission of the server; nil admits everything.
	Admission admission.Interface
	// Authorizer is asked for the rights that a request needs beside the right to its verb; nil
	// allows everything.
	Authorizer authorizer.Authorizer
	// DefaultVersion of etcd for clusters that are created without one; empty for the
	// version that this release recommends.
	DefaultVersion string
}

// NewStorage returns the endpoint of every resource and subresource of v1beta2.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter, needs Dependencies) (map[string]rest.Storage, error) {
	guard := rights.Guard{Asker: rights.Asker{Authorizer: needs.Authorizer}}
	backups, err := backup.NewStorage(scheme, optsGetter, guard)
	if err != nil {
		return nil, err
	}
	restores, err := restore.NewStorage(scheme, optsGetter, guard)
	if err != nil {
		return nil, err
	}
	clusters, err := cluster.NewStorage(scheme, optsGetter, cluster.Dependencies{
		Asker: needs.Asker,
		Backups: &kind.Creator[*v1beta2.EtcdBackup]{
			Store:     backups.EtcdBackup.Store,
			Kind:      v1beta2.SchemeGroupVersion.WithKind("EtcdBackup"),
			Resource:  v1beta2.SchemeGroupVersion.WithResource("etcdbackups"),
			Scheme:    scheme,
			Admission: needs.Admission,
		},
		Restores: &kind.Creator[*v1beta2.EtcdRestore]{
			Store:     restores.EtcdRestore.Store,
			Kind:      v1beta2.SchemeGroupVersion.WithKind("EtcdRestore"),
			Resource:  v1beta2.SchemeGroupVersion.WithResource("etcdrestores"),
			Scheme:    scheme,
			Admission: needs.Admission,
		},
		Guard:          guard,
		DefaultVersion: needs.DefaultVersion,
	})
	if err != nil {
		return nil, err
	}
	return map[string]rest.Storage{
		"etcdclusters":            clusters.EtcdCluster,
		"etcdclusters/status":     clusters.Status,
		"etcdclusters/scale":      clusters.Scale,
		"etcdclusters/health":     clusters.Health,
		"etcdclusters/members":    clusters.Members,
		"etcdclusters/moveleader": clusters.MoveLeader,
		"etcdclusters/defrag":     clusters.Defrag,
		"etcdclusters/restart":    clusters.Restart,
		"etcdclusters/recover":    clusters.Recover,
		"etcdclusters/backup":     clusters.Backup,
		"etcdclusters/restore":    clusters.Restore,
		"etcdclusters/proxy":      clusters.Proxy,
		"etcdbackups":             backups.EtcdBackup,
		"etcdbackups/status":      backups.Status,
		"etcdrestores":            restores.EtcdRestore,
		"etcdrestores/status":     restores.Status,
	}, nil
}
