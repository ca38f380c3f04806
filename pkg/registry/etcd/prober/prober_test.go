// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/health"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// subject is a real cluster of etcd, and the pods that Kubernetes would show of it.
type subject struct {
	*testing.T
	cluster *v1beta2.EtcdCluster
	etcd    *etcdtest.Cluster
	kube    *fake.Clientset
	prober  *Prober
	objects []runtime.Object
}

func newSubject(t *testing.T, voters int) *subject {
	t.Helper()
	s := &subject{T: t, etcd: etcdtest.NewVoters(t, voters), cluster: &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To(int32(voters))},
		Status:     v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning},
	}}
	for i := range voters {
		name := fmt.Sprintf("m%d", i)
		s.objects = append(s.objects, s.pod(name, forward(t, strings.TrimPrefix(s.etcd.Member(name).ClientURL, "http://"))))
	}
	s.start()
	return s
}

func (s *subject) start() {
	pool := etcd.NewPool(etcd.PoolConfig{})
	s.Cleanup(pool.Close)
	s.kube = fake.NewClientset(s.objects...)
	s.prober = New(s.kube, pool, clock.RealClock{})
}

func (s *subject) pod(name, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", Labels: resources.Labels("m"), OwnerReferences: []metav1.OwnerReference{resources.Owner(s.cluster)},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

func (s *subject) probe() *health.Probe {
	s.Helper()
	p, err := s.prober.Probe(s.Context(), s.cluster)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// listen opens the port of etcd on a loopback address of its own, which is the address
// of a pod here.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	for range 50 {
		ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 2+rand.IntN(250))
		if l, err := net.Listen("tcp", net.JoinHostPort(ip, fmt.Sprint(resources.ClientPort))); err == nil {
			t.Cleanup(func() { l.Close() })
			return l, ip
		}
	}
	t.Fatal("no free address")
	return nil, ""
}

// forward makes a server reachable at the port of etcd of an address.
func forward(t *testing.T, to string) string {
	t.Helper()
	l, ip := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to)
				if err != nil {
					return
				}
				defer s.Close()
				go func() { _, _ = io.Copy(s, c); s.Close() }()
				_, _ = io.Copy(c, s)
			}()
		}
	}()
	return ip
}

// hole is an address that takes connections and never says a word.
func hole(t *testing.T) string {
	t.Helper()
	_, ip := listen(t)
	return ip
}

func TestProbe(t *testing.T) {
	t.Parallel()
	s := newSubject(t, 3)
	s.etcd.Leader()
	// Members on a slow machine may need more than the budget now and then.
	etcdtest.Eventually(t, "three members that respond in time", func() error {
		p := s.probe()
		if p.Confirmed == nil || len(p.Confirmed.Members) != 3 || len(p.Responses) != 3 {
			return fmt.Errorf("unexpected %+v", p)
		}
		for _, a := range p.Responses {
			if a.Err != nil || a.ViewErr != nil || len(a.View.Members) != 3 || a.Health.Leader == 0 {
				return fmt.Errorf("unexpected response %+v", a)
			}
		}
		if h := health.Diagnose(p); h.Verdict != v1beta2.VerdictHealthy {
			return fmt.Errorf("verdict %s: %s", h.Verdict, h.Message)
		}
		return nil
	})
}

// A member that swallows every packet must not delay the responses of the others.
func TestProbeOfABlackHole(t *testing.T) {
	t.Parallel()
	s := newSubject(t, 3)
	leader := s.etcd.Leader().Name
	for i, o := range s.objects {
		if p := o.(*corev1.Pod); p.Name != leader {
			s.objects[i] = s.pod(p.Name, hole(t))
			break
		}
	}
	s.start()
	etcdtest.Eventually(t, "two members that respond in time", func() error {
		h := health.Diagnose(s.probe())
		if h.Verdict != v1beta2.VerdictDegraded || !h.QuorumResponded || ptr.Deref(h.Tolerance, 9) != 0 || h.Serving != 2 {
			return fmt.Errorf("unexpected %s: %s (%+v)", h.Verdict, h.Message, h.Members)
		}
		return nil
	})
}

func TestProbeWithoutQuorum(t *testing.T) {
	t.Parallel()
	s := newSubject(t, 3)
	s.etcd.Member("m1").Kill()
	s.etcd.Member("m2").Kill()
	etcdtest.Eventually(t, "the loss of the quorum", func() error {
		h := health.Diagnose(s.probe())
		if h.Verdict != v1beta2.VerdictQuorumLost || ptr.Deref(h.Tolerance, 9) >= 0 {
			return fmt.Errorf("verdict %s: %s", h.Verdict, h.Message)
		}
		return nil
	})
}

func TestProbeWithoutAResponse(t *testing.T) {
	t.Parallel()
	s := newSubject(t, 1)
	s.objects = []runtime.Object{s.pod("m0", hole(t))}
	s.start()
	if h := health.Diagnose(s.probe()); h.Verdict != v1beta2.VerdictUnreachable {
		t.Errorf("verdict %s: %s", h.Verdict, h.Message)
	}
}

// The prober skips pods that are not owned by the cluster, whatever their name.
func TestProbeSkipsPodsOfOtherClusters(t *testing.T) {
	t.Parallel()
	s := newSubject(t, 1)
	notOwned := s.pod("m9", hole(t))
	notOwned.OwnerReferences[0].UID = "other"
	s.objects = append(s.objects, notOwned)
	s.start()
	if p := s.probe(); len(p.Responses) != 1 || len(p.Pods) != 1 {
		t.Errorf("probed %d of %d pods", len(p.Responses), len(p.Pods))
	}
}

func TestProbeWithoutPods(t *testing.T) {
	t.Parallel()
	s := newSubject(t, 1)
	s.kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the kube-apiserver is away")
	})
	s.cluster.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "m0", ID: "1"}}
	p := s.probe()
	if p.PodsKnown || len(p.Problems) != 1 || !strings.Contains(p.Problems[0], "the kube-apiserver is away") || len(p.Responses) != 1 {
		t.Errorf("unexpected %+v", p)
	}
}

func TestProbesAreLimited(t *testing.T) {
	t.Parallel()
	if _, err := New(nil, nil, clock.RealClock{}).Probe(t.Context(), &v1beta2.EtcdCluster{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("without Kubernetes: %v", err)
	}
	s := newSubject(t, 1)
	for range maxAtOnce {
		_, _ = s.prober.inFlight.Acquire("greedy")
	}
	if _, err := s.prober.Probe(t.Context(), s.cluster); err != nil {
		t.Errorf("with too many probes of another namespace: %v", err)
	}
	greedy := s.cluster.DeepCopy()
	greedy.Namespace = "greedy"
	if _, err := s.prober.Probe(t.Context(), greedy); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "of namespace greedy") {
		t.Errorf("with too many probes of the namespace: %v", err)
	}
}
