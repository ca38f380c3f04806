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
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/restore"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// Dependencies are what the endpoints need in addition to the stored objects.
type Dependencies struct {
	// Prober reads the state of members.
	Prober *prober.Prober
	// Admission is that of the server; nil admits everything.
	Admission admission.Interface
	// Authorizer checks the rights that a request needs in addition to the right to its verb; nil
	// allows everything.
	Authorizer authorizer.Authorizer
	// DefaultVersion is the etcd version of clusters that are created without spec.version.
	// Empty means the version that this release recommends.
	DefaultVersion string
}

// NewStorage returns the endpoint of every resource and subresource of v1beta2.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter, dependencies Dependencies) (map[string]rest.Storage, error) {
	guard := rights.Guard{Checker: rights.Checker{Authorizer: dependencies.Authorizer}}
	backups, err := backup.NewStorage(scheme, optsGetter, guard)
	if err != nil {
		return nil, err
	}
	restores, err := restore.NewStorage(scheme, optsGetter, guard)
	if err != nil {
		return nil, err
	}
	clusters, err := cluster.NewStorage(scheme, optsGetter, cluster.Dependencies{
		Prober: dependencies.Prober,
		Backups: &genericstore.Creator[*v1beta2.EtcdBackup]{
			Store:     backups.EtcdBackup.Store,
			Kind:      v1beta2.SchemeGroupVersion.WithKind("EtcdBackup"),
			Resource:  v1beta2.SchemeGroupVersion.WithResource("etcdbackups"),
			Scheme:    scheme,
			Admission: dependencies.Admission,
		},
		Restores: &genericstore.Creator[*v1beta2.EtcdRestore]{
			Store:     restores.EtcdRestore.Store,
			Kind:      v1beta2.SchemeGroupVersion.WithKind("EtcdRestore"),
			Resource:  v1beta2.SchemeGroupVersion.WithResource("etcdrestores"),
			Scheme:    scheme,
			Admission: dependencies.Admission,
		},
		Guard:          guard,
		DefaultVersion: dependencies.DefaultVersion,
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
		"etcdclusters/replace":    clusters.Replace,
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
