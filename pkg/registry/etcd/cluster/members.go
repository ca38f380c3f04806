// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/health"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
)

// MembersREST serves /members: the member list as each member reports it at the time of the
// request.
type MembersREST struct {
	rest.TableConvertor

	clusters rest.Getter
	prober   *prober.Prober
}

var (
	_ rest.Getter         = &MembersREST{}
	_ rest.TableConvertor = &MembersREST{}
)

func newMembersREST(clusters rest.Getter, p *prober.Prober) *MembersREST {
	return &MembersREST{rest.NewDefaultTableConvertor(v1beta2.Resource("etcdclusters/members")), clusters, p}
}

// New returns an empty result.
func (*MembersREST) New() runtime.Object { return &v1beta2.EtcdClusterMembers{} }

// Destroy does nothing: the store belongs to the main resource.
func (*MembersREST) Destroy() {}

// Get probes the members. Requests at the same moment share the result.
func (r *MembersREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	probe, err := probeCluster(ctx, r.clusters, r.prober, name)
	if err != nil {
		return nil, err
	}
	return health.DescribeMembers(probe), nil
}
