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

// HealthREST serves /health: the state of the members at the time of the request, and what to
// do next.
type HealthREST struct {
	rest.TableConvertor

	clusters rest.Getter
	prober   *prober.Prober
}

var (
	_ rest.Getter         = &HealthREST{}
	_ rest.TableConvertor = &HealthREST{}
)

func newHealthREST(clusters rest.Getter, p *prober.Prober) *HealthREST {
	return &HealthREST{rest.NewDefaultTableConvertor(v1beta2.Resource("etcdclusters/health")), clusters, p}
}

// New returns an empty result.
func (*HealthREST) New() runtime.Object { return &v1beta2.EtcdClusterHealth{} }

// Destroy does nothing: the store belongs to the main resource.
func (*HealthREST) Destroy() {}

// Get probes the members. Requests at the same moment share the result.
func (r *HealthREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	probe, err := probeCluster(ctx, r.clusters, r.prober, name)
	if err != nil {
		return nil, err
	}
	diagnosed := health.Diagnose(probe)
	verdicts.WithLabelValues(string(diagnosed.Verdict)).Inc()
	return diagnosed, nil
}

// probeCluster reads the cluster of a request and probes its members.
func probeCluster(ctx context.Context, clusters rest.Getter, p *prober.Prober, name string) (*health.Probe, error) {
	cluster, err := getCluster(ctx, clusters, name)
	if err != nil {
		return nil, err
	}
	return p.ProbeShared(ctx, cluster)
}
