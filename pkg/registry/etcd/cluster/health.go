// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/live"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/picture"
)

// getter reads clusters.
type getter interface {
	Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
}

// LookREST serves what the members of a cluster say when it is asked for: its health,
// or who they are.
type LookREST struct {
	clusters getter
	asker    *live.Asker
	empty    func() runtime.Object
	tell     func(*picture.Picture) runtime.Object
	rest.TableConvertor
}

var (
	_ rest.Getter         = &LookREST{}
	_ rest.TableConvertor = &LookREST{}
)

func newHealth(clusters getter, asker *live.Asker) *LookREST {
	return &LookREST{
		clusters: clusters,
		asker:    asker,
		empty:    func() runtime.Object { return &v1beta2.EtcdClusterHealth{} },
		tell: func(p *picture.Picture) runtime.Object {
			health := picture.Health(p)
			verdicts.WithLabelValues(string(health.Verdict)).Inc()
			return health
		},
		TableConvertor: rest.NewDefaultTableConvertor(v1beta2.Resource("etcdclusters/health")),
	}
}

func newMembers(clusters getter, asker *live.Asker) *LookREST {
	return &LookREST{
		clusters:       clusters,
		asker:          asker,
		empty:          func() runtime.Object { return &v1beta2.EtcdClusterMembers{} },
		tell:           func(p *picture.Picture) runtime.Object { return picture.Members(p) },
		TableConvertor: rest.NewDefaultTableConvertor(v1beta2.Resource("etcdclusters/members")),
	}
}

// New returns an empty answer.
func (r *LookREST) New() runtime.Object { return r.empty() }

// Destroy leaves what is shared to the main resource.
func (r *LookREST) Destroy() {}

// Get asks the members now; requests of the same moment share the answer.
func (r *LookREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	cluster, err := read(ctx, r.clusters, name)
	if err != nil {
		return nil, err
	}
	p, err := r.asker.AskShared(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return r.tell(p), nil
}

// read returns the cluster of a request.
func read(ctx context.Context, clusters getter, name string) (*v1beta2.EtcdCluster, error) {
	obj, err := clusters.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	cluster, ok := obj.(*v1beta2.EtcdCluster)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("unexpected type %T", obj))
	}
	return cluster, nil
}
