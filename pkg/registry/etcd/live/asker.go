// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

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
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/picture"
)

const (
	// Budget is how long asking a cluster may take, whatever its members do.
	Budget = 2 * time.Second
	// The parts of the budget: what Kubernetes may take at most, what one member may
	// take, and when the last answer must be there. The rest is for the reply.
	kubernetesShare = 600 * time.Millisecond
	memberShare     = 1200 * time.Millisecond
	lastAnswer      = 1800 * time.Millisecond
	// secondLook is when members that disagreed are asked once more: a leader that has
	// just changed is news to some of them for a moment.
	secondLook = 250 * time.Millisecond
	// maxAtOnce bounds how many clusters are asked at the same time.
	maxAtOnce = 64
	// retryAfter is what a client is told that comes beyond that, in seconds.
	retryAfter = 1
)

// ErrNoKubernetes means that the server has no access to Kubernetes, and so cannot
// find the members of any cluster.
var ErrNoKubernetes = errors.New("this API server has no access to a kube-apiserver: run it in a pod or set --kubeconfig")

// Asker asks the members of clusters.
type Asker struct {
	kube  kubernetes.Interface
	pool  *etcd.Pool
	clock clock.PassiveClock
	slots chan struct{}
	// shared are the pictures that several requests may see.
	shared shared
}

// NewAsker returns an Asker. Without a client for Kubernetes every question fails with
// ErrNoKubernetes. The pool stays the caller's.
func NewAsker(kube kubernetes.Interface, pool *etcd.Pool, clock clock.PassiveClock) *Asker {
	return &Asker{kube: kube, pool: pool, clock: clock, slots: make(chan struct{}, maxAtOnce)}
}

// Client returns a client for the members found by Find.
func (a *Asker) Client(found *Found) *etcd.Client { return a.pool.Client(found.Target) }

// Ask makes a picture of a cluster within the budget. It is an error only if the
// cluster could not be asked at all; that nobody answers is in the picture.
func (a *Asker) Ask(ctx context.Context, cluster *v1beta2.EtcdCluster) (*picture.Picture, error) {
	release, err := a.admit()
	if err != nil {
		return nil, err
	}
	defer release()
	start := a.clock.Now()
	ctx, cancel := context.WithTimeout(ctx, lastAnswer)
	defer cancel()
	found, err := a.Find(ctx, cluster)
	if err != nil {
		return nil, err
	}
	p := a.ask(ctx, cluster, found)
	if picture.Wavers(p) && pause(ctx, secondLook) {
		p = a.ask(ctx, cluster, found)
	}
	p.AskedAt, p.Took = start, a.clock.Since(start)
	observeAsk(p)
	return p, nil
}

// admit bounds how much is asked at once.
func (a *Asker) admit() (release func(), err error) {
	if a.kube == nil {
		return nil, apierrors.NewServiceUnavailable(ErrNoKubernetes.Error())
	}
	select {
	case a.slots <- struct{}{}:
		asksInFlight.Inc()
		return func() { <-a.slots; asksInFlight.Dec() }, nil
	default:
		return nil, apierrors.NewTooManyRequests("too many clusters are being asked at once", retryAfter)
	}
}

// ask asks every member at once for its status and for its member list, and meanwhile
// for a list through a quorum.
func (a *Asker) ask(ctx context.Context, cluster *v1beta2.EtcdCluster, found *Found) *picture.Picture {
	p := &picture.Picture{
		Cluster:                 cluster,
		Pods:                    found.Pods,
		PodsKnown:               found.PodsKnown,
		Claims:                  found.Claims,
		Answers:                 make([]picture.Answer, len(found.Target.Endpoints)),
		ClientCertificateExpiry: found.CertificateExpiry,
		CertificateErr:          found.CertificateErr,
		Problems:                found.Problems,
	}
	client := a.Client(found)
	var group sync.WaitGroup
	for i, e := range found.Target.Endpoints {
		group.Go(func() { p.Answers[i] = a.askOne(ctx, client, e) })
	}
	if len(found.Target.Endpoints) > 0 {
		group.Go(func() {
			membership, err := client.Members(ctx)
			if err != nil {
				p.ConfirmErr = err
				return
			}
			p.Confirmed = &membership
		})
	}
	group.Wait()
	var said []*etcd.MemberHealth
	for i := range p.Answers {
		if p.Answers[i].Err == nil {
			said = append(said, &p.Answers[i].Health)
		}
	}
	if p.Confirmed != nil {
		client.TellAlarms(ctx, said...)
	}
	return p
}

func (a *Asker) askOne(ctx context.Context, client *etcd.Client, e etcd.Endpoint) picture.Answer {
	ctx, cancel := context.WithTimeout(ctx, memberShare)
	defer cancel()
	start := a.clock.Now()
	answer := picture.Answer{Name: e.Name}
	var group sync.WaitGroup
	group.Go(func() { answer.Health, answer.Err = client.Status(ctx, e) })
	group.Go(func() { answer.View, answer.ViewErr = client.View(ctx, e) })
	group.Wait()
	answer.Took = a.clock.Since(start)
	return answer
}

// pause waits and says whether ctx goes on.
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

// Able is false for a server that cannot ask anybody.
func (a *Asker) Able() bool { return a.kube != nil }
