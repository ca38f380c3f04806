// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/health"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

const (
	// Budget is how long the probe of a cluster may take, whatever its members do.
	Budget = 2 * time.Second
	// The parts of the budget: what Kubernetes may take at most, what one member may
	// take, and when the last response must be there. The rest is for the reply.
	kubernetesShare = 600 * time.Millisecond
	memberShare     = 1200 * time.Millisecond
	lastResponse    = 1800 * time.Millisecond
	// secondLook is the pause before members that disagreed are probed once more: a
	// leader that has just changed is news to some of them for a moment.
	secondLook = 250 * time.Millisecond
	// maxAtOnce limits how many clusters are probed at the same time.
	maxAtOnce = 64
	// retryAfter is the number of seconds after which a client may retry a request that
	// the limit has rejected.
	retryAfter = 1
)

// ErrNoKubernetes means that the server has no access to Kubernetes, and so cannot
// find the members of any cluster.
var ErrNoKubernetes = errors.New("this API server has no access to a kube-apiserver: run it in a pod or set --kubeconfig")

// Prober probes the members of clusters.
type Prober struct {
	kube  kubernetes.Interface
	pool  *etcd.Pool
	clock clock.PassiveClock
	// inFlight limits how many clusters are probed at the same time.
	inFlight *share.Limiter
	// shared are the probes that several requests may see.
	shared shared
}

// New returns a Prober. Without a client for Kubernetes every probe fails with
// ErrNoKubernetes. The caller closes the pool.
func New(kube kubernetes.Interface, pool *etcd.Pool, clock clock.PassiveClock) *Prober {
	return &Prober{kube: kube, pool: pool, clock: clock, inFlight: share.NewLimiter(share.Divided(maxAtOnce))}
}

// HasKubernetes is true if the server can read the objects of clusters.
func (p *Prober) HasKubernetes() bool { return p.kube != nil }

// Client returns a client for the members that were discovered.
func (p *Prober) Client(found *Discovery) *etcd.Client { return p.pool.Client(found.Target) }

// Probe probes a cluster within the budget. It returns an error only if the cluster could
// not be probed at all. Members that do not respond are part of the result.
func (p *Prober) Probe(ctx context.Context, cluster *v1beta2.EtcdCluster) (*health.Probe, error) {
	release, err := p.acquire(cluster.Namespace)
	if err != nil {
		return nil, err
	}
	defer release()
	start := p.clock.Now()
	ctx, cancel := context.WithTimeout(ctx, lastResponse)
	defer cancel()
	found, err := p.Discover(ctx, cluster)
	if err != nil {
		return nil, err
	}
	result := p.probeMembers(ctx, cluster, found)
	if health.IsUnsettled(result) && pause(ctx, secondLook) {
		result = p.probeMembers(ctx, cluster, found)
	}
	result.ProbedAt, result.Took = start, p.clock.Since(start)
	recordProbe(result)
	return result, nil
}

// acquire takes one of the places for probes at the same time, or rejects the request.
func (p *Prober) acquire(namespace string) (release func(), err error) {
	if p.kube == nil {
		return nil, apierrors.NewServiceUnavailable(ErrNoKubernetes.Error())
	}
	leave, lack := p.inFlight.Acquire(namespace)
	switch lack {
	case share.Nothing:
		probesInFlight.Inc()
		return func() { leave(); probesInFlight.Dec() }, nil
	case share.OfNamespace:
		return nil, apierrors.NewTooManyRequests("this API server probes as many clusters of namespace "+namespace+" as it has free places, which are for other namespaces; retry in a second", retryAfter)
	default:
		return nil, apierrors.NewTooManyRequests("this API server probes too many clusters at once; retry in a second", retryAfter)
	}
}

// probeMembers probes every member for itself and, at the same time, reads the member
// list through a quorum.
func (p *Prober) probeMembers(ctx context.Context, cluster *v1beta2.EtcdCluster, found *Discovery) *health.Probe {
	result := &health.Probe{
		Cluster:                 cluster,
		Pods:                    found.Pods,
		PodsKnown:               found.PodsKnown,
		PVCs:                    found.PVCs,
		Responses:               make([]health.Response, len(found.Target.Endpoints)),
		ClientCertificateExpiry: found.CertificateExpiry,
		CertificateErr:          found.CertificateErr,
		Problems:                found.Problems,
	}
	client := p.Client(found)
	var group sync.WaitGroup
	for i, e := range found.Target.Endpoints {
		group.Go(func() { result.Responses[i] = p.probeMember(ctx, client, e) })
	}
	if len(found.Target.Endpoints) > 0 {
		group.Go(func() {
			membership, err := client.Members(ctx)
			if err != nil {
				result.ConfirmErr = err
				return
			}
			result.Confirmed = &membership
		})
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, memberShare)
			defer cancel()
			result.FailedReads = client.FailedReads(ctx)
		})
	}
	group.Wait()
	var said []*etcd.MemberHealth
	for i := range result.Responses {
		if result.Responses[i].Err == nil {
			said = append(said, &result.Responses[i].Health)
		}
	}
	if result.Confirmed != nil {
		client.TellAlarms(ctx, said...)
	}
	return result
}

func (p *Prober) probeMember(ctx context.Context, client *etcd.Client, e etcd.Endpoint) health.Response {
	ctx, cancel := context.WithTimeout(ctx, memberShare)
	defer cancel()
	start := p.clock.Now()
	response := health.Response{Name: e.Name}
	var group sync.WaitGroup
	group.Go(func() { response.Health, response.Err = client.Status(ctx, e) })
	group.Go(func() { response.View, response.ViewErr = client.View(ctx, e) })
	group.Wait()
	response.Took = p.clock.Since(start)
	return response
}

// pause waits for d, and returns false if the context ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
