// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// PollInterval is the time between two requests to etcd for what it does not announce.
	PollInterval = 20 * time.Millisecond
	// askTimeout bounds one question to one member.
	askTimeout = time.Second
	// dialTimeout bounds one attempt to connect; an address that no pod has yet does
	// not respond at all.
	dialTimeout = 250 * time.Millisecond
	clientPort  = "2379"
)

// Members asks the members of one cluster, each at the address of its pod.
type Members struct {
	// Pods of the cluster.
	Pods *View[*corev1.Pod]
	// TLS, if not nil, holds the certificates of clients and the CAs that they trust. It must
	// be set before the first client is made.
	TLS *tls.Config

	// dial is how clients connect to the addresses of pods.
	dial []grpc.DialOption

	mu      sync.Mutex
	clients map[string]*clientv3.Client
}

// Members follows the pods of a cluster and asks their members.
func (e *Environment) Members(ctx context.Context, namespace, cluster string) (*Members, error) {
	pods, err := e.MemberPods(ctx, namespace, cluster)
	if err != nil {
		return nil, err
	}
	m := MembersOf(pods)
	m.dial = e.DialOptions()
	return m, nil
}

// MembersOf asks the members in these pods, be they of one cluster or of many.
func MembersOf(pods *View[*corev1.Pod]) *Members {
	return &Members{Pods: pods, dial: dialDirectly(dialTimeout), clients: map[string]*clientv3.Client{}}
}

// Close ends the view and the connections.
func (m *Members) Close() error {
	m.Pods.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, c := range m.clients {
		errs = append(errs, c.Close())
	}
	m.clients = nil
	return errors.Join(errs...)
}

// Client returns a client that talks to one pod only.
func (m *Members) Client(pod *corev1.Pod) (*clientv3.Client, error) {
	if pod.Status.PodIP == "" {
		return nil, fmt.Errorf("pod %s has no address yet", pod.Name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients == nil {
		return nil, errors.New("closed")
	}
	// A pod gets another address when its node has been restarted.
	address := m.endpoint(pod)
	if c := m.clients[address]; c != nil {
		return c, nil
	}
	c, err := m.newClient(address)
	if err == nil {
		m.clients[address] = c
	}
	return c, err
}

// Live returns the pods that are not going away.
func (m *Members) Live() []*corev1.Pod {
	var live []*corev1.Pod
	for _, p := range m.Pods.List() {
		if p.DeletionTimestamp == nil {
			live = append(live, p)
		}
	}
	return live
}

func (m *Members) endpoint(pod *corev1.Pod) string {
	scheme := "http://"
	if m.TLS != nil {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(pod.Status.PodIP, clientPort)
}

// newClient returns a client that tries again quickly: a test must not wait for a
// back-off when a member is there.
func (m *Members) newClient(endpoints ...string) (*clientv3.Client, error) {
	return newClient(m.dial, m.TLS, endpoints...)
}

func newClient(dial []grpc.DialOption, config *tls.Config, endpoints ...string) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: config, Logger: zap.NewNop(), DialOptions: dial})
	if err != nil {
		return nil, fmt.Errorf("make an etcd client: %w", err)
	}
	return c, nil
}

// Each asks every live member at the same time and returns the first error.
func (m *Members) Each(ctx context.Context, ask func(context.Context, *corev1.Pod, *clientv3.Client) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range m.Live() {
		group.Go(func() error {
			c, err := m.Client(p)
			if err != nil {
				return err
			}
			if err := ask(ctx, p, c); err != nil {
				return fmt.Errorf("member %s: %w", p.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Voters returns an error unless there are exactly n live pods, and each of them is a member
// of its own that serves a linearizable read. A linearizable list must name exactly these n
// as started members that vote. A pod that is known to be lost must not be among them, even
// if it still responds.
func (m *Members) Voters(ctx context.Context, n int, lost ...types.UID) error {
	live := m.Live()
	if len(live) != n {
		return fmt.Errorf("%d pods live, not %d", len(live), n)
	}
	for _, p := range live {
		if slices.Contains(lost, p.UID) {
			return fmt.Errorf("pod %s still exists", p.Name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var mu sync.Mutex
	responded := map[uint64]string{}
	err := m.Each(ctx, func(ctx context.Context, pod *corev1.Pod, c *clientv3.Client) error {
		read, err := c.Get(ctx, "a")
		if err != nil {
			return err
		}
		list, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		responded[read.Header.MemberId] = pod.Name
		return checkList(list, n)
	})
	if err != nil {
		return err
	}
	if len(responded) != n {
		return fmt.Errorf("%d pods are only %d members", n, len(responded))
	}
	return nil
}

// Reads returns an error unless every live member serves a linearizable read.
func (m *Members) Reads(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return m.Each(ctx, func(ctx context.Context, _ *corev1.Pod, c *clientv3.Client) error {
		_, err := c.Get(ctx, "a")
		return err
	})
}

func checkList(list *clientv3.MemberListResponse, n int) error {
	if len(list.Members) != n {
		return fmt.Errorf("etcd lists %d members, not %d", len(list.Members), n)
	}
	for _, member := range list.Members {
		if member.Name == "" {
			return fmt.Errorf("member %x has not started", member.ID)
		}
		if member.IsLearner {
			return fmt.Errorf("member %s is a learner", member.Name)
		}
	}
	return nil
}

// AwaitVoters waits until Voters is content. The error says what was missing last.
func (m *Members) AwaitVoters(ctx context.Context, n int, lost ...types.UID) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, PollInterval, true, func(ctx context.Context) (bool, error) {
		now := m.Voters(ctx, n, lost...)
		if ctx.Err() == nil {
			last = now
		}
		return now == nil, nil
	})
	if err != nil {
		return fmt.Errorf("no %d voters: %w; at last: %w", n, err, last)
	}
	return nil
}

// Response is the status of one member.
type Response struct {
	Pod     *corev1.Pod
	ID      uint64
	Leader  uint64
	Term    uint64
	Version string
	// DBSize is the size of the database's file in bytes.
	DBSize int64
}

// Ask returns what every live member says, by the name of its pod.
func (m *Members) Ask(ctx context.Context) (map[string]Response, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var mu sync.Mutex
	responses := map[string]Response{}
	err := m.Each(ctx, func(ctx context.Context, pod *corev1.Pod, c *clientv3.Client) error {
		r, err := status(ctx, pod, c)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		responses[pod.Name] = r
		return nil
	})
	return responses, err
}

// AskOne returns what one member says.
func (m *Members) AskOne(ctx context.Context, pod *corev1.Pod) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := m.Client(pod)
	if err != nil {
		return Response{}, err
	}
	return status(ctx, pod, c)
}

func status(ctx context.Context, pod *corev1.Pod, c *clientv3.Client) (Response, error) {
	s, err := c.Status(ctx, c.Endpoints()[0])
	if err != nil {
		return Response{}, err
	}
	return Response{Pod: pod, ID: s.Header.MemberId, Leader: s.Leader, Term: s.RaftTerm, Version: s.Version, DBSize: s.DbSize}, nil
}

// Leader returns the response of the leader.
func (m *Members) Leader(ctx context.Context) (Response, error) {
	responses, err := m.Ask(ctx)
	if err != nil {
		return Response{}, err
	}
	for _, a := range responses {
		if a.ID == a.Leader {
			return a, nil
		}
	}
	return Response{}, errors.New("no member leads")
}
