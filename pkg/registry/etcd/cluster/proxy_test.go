// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// messageSize is how much etcd sends at a time.
	messageSize = 32 << 10
	// shortStall is for tests that wait for it.
	shortStall = 500 * time.Millisecond
)

// member is as much of a member as a snapshot needs.
type member struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedKVServer

	database []byte
	// clock is that of the client: it stands still unless the member lets it go on.
	clock *testingclock.FakeClock
	// half is called instead of sending the second half, hash instead of sending the hash.
	half, hash func(pb.Maintenance_SnapshotServer) error
	ended      chan struct{}
}

func (*member) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 1}, Version: "3.6.16", Leader: 1, RaftAppliedIndex: 9}, nil
}

func (*member) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 42}}, nil
}

// Snapshot sends the database as etcd does: in messages, and its hash in one of its own.
func (m *member) Snapshot(_ *pb.SnapshotRequest, stream pb.Maintenance_SnapshotServer) error {
	defer close(m.ended)
	for at := 0; at < len(m.database); at += messageSize {
		if m.half != nil && at > len(m.database)/2 {
			return m.half(stream)
		}
		end := min(at+messageSize, len(m.database))
		err := stream.Send(&pb.SnapshotResponse{Blob: m.database[at:end], RemainingBytes: uint64(len(m.database) - end), Version: "3.6.0"})
		if err != nil {
			return err
		}
	}
	if m.hash != nil {
		return m.hash(stream)
	}
	sum := sha256.Sum256(m.database)
	return stream.Send(&pb.SnapshotResponse{Blob: sum[:]})
}

// hang sends nothing until the client ends the stream.
func (m *member) hang(stream pb.Maintenance_SnapshotServer, stall time.Duration) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-tick.C:
			m.clock.Step(stall)
		}
	}
}

// pausing is at its end after a while.
type pausing struct{ over <-chan time.Time }

func (p pausing) Read([]byte) (int, error) {
	<-p.over
	return 0, io.EOF
}

// one is the only cluster there is.
type one struct{ *v1beta2.EtcdCluster }

func (o one) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if name != o.Name {
		return nil, apierrors.NewNotFound(v1beta2.Resource("etcdclusters"), name)
	}
	return o.EtcdCluster, nil
}

// proxied is a cluster of one member behind the subresource.
type proxied struct {
	*testing.T
	rest *ProxyREST
	url  string
	http *http.Client
}

// newProxied serves a member, over HTTP of this version.
func newProxied(t *testing.T, m *member, version int) *proxied {
	t.Helper()
	m.ended = make(chan struct{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, m)
	pb.RegisterKVServer(server, m)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	cluster := valid("c")
	cluster.Namespace, cluster.UID = ns, "uid"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c-x", Namespace: ns, Labels: resources.Labels("c"), OwnerReferences: []metav1.OwnerReference{resources.Owner(cluster)},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: etcdtest.NewLink(t, listener.Addr().String(), resources.ClientPort).IP},
	}
	m.clock = testingclock.NewFakeClock(time.Now())
	pool := etcd.NewPool(etcd.PoolConfig{Clock: m.clock})
	t.Cleanup(pool.Close)
	registerMetrics() // as NewStorage does
	p := &proxied{T: t, rest: newProxyREST(one{cluster}, prober.New(fake.NewClientset(pod), pool, clock.RealClock{}), rights.Guard{})}
	front := httptest.NewUnstartedServer(p)
	front.EnableHTTP2 = version == 2
	front.StartTLS()
	t.Cleanup(front.Close)
	p.url, p.http = front.URL, front.Client()
	return p
}

// ServeHTTP does what the API server does with a request for the subresource.
func (p *proxied) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := request.WithUser(request.WithNamespace(r.Context(), ns), &user.DefaultInfo{Name: "reader"})
	responder := errorResponder{w}
	name, path, _ := strings.Cut(r.URL.Path[1:], "/")
	handler, err := p.rest.Connect(ctx, name, &v1beta2.EtcdClusterProxyOptions{Path: "/" + path, Member: r.URL.Query().Get("member")}, responder)
	if err != nil {
		responder.Error(err)
		return
	}
	handler.ServeHTTP(w, r)
}

type errorResponder struct{ http.ResponseWriter }

func (r errorResponder) Object(int, runtime.Object) {}

func (r errorResponder) Error(err error) {
	var known apierrors.APIStatus
	code := http.StatusInternalServerError
	if errors.As(err, &known) {
		code = int(known.Status().Code)
	}
	http.Error(r, err.Error(), code)
}

// received is what a client receives; the test closes its body.
type received struct {
	code, major int
	header      http.Header
	body        io.Reader
}

func (p *proxied) get(ctx context.Context, path string) received {
	p.Helper()
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		p.Fatal(err)
	}
	response, err := p.http.Do(asked)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = response.Body.Close() })
	return received{code: response.StatusCode, major: response.ProtoMajor, header: response.Header, body: response.Body}
}

func database(t *testing.T, size int) []byte {
	t.Helper()
	raw := make([]byte, size)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestSnapshotIsStreamed(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/c/snapshot", "/c/snapshot?member=c-x"} {
		for _, version := range []int{1, 2} {
			raw := database(t, 3000*512)
			p := newProxied(t, &member{database: raw}, version)
			response := p.get(t.Context(), path)
			got, err := io.ReadAll(response.body)
			sum := sha256.Sum256(raw)
			if err != nil || response.code != http.StatusOK || response.major != version || !bytes.Equal(got, append(raw, sum[:]...)) {
				t.Errorf("%s: %d, %d bytes of %d, %v", path, response.code, len(got), len(raw), err)
			}
			for name, want := range map[string]string{
				"Content-Length": strconv.Itoa(len(got)), "Content-Type": "application/octet-stream", "Etcd-Member": "c-x", "Etcd-Revision": "42", "Etcd-Confirmed": "true",
			} {
				if got := response.header.Get(name); got != want {
					t.Errorf("%s: header %s is %q, want %q", path, name, got, want)
				}
			}
		}
	}
}

// A stream that is not whole, or not what etcd has read, must break for its reader.
func TestSnapshotThatBreaks(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]*member{
		"the member fails":    {half: func(pb.Maintenance_SnapshotServer) error { return status.Error(codes.Unavailable, "killed") }},
		"the stream ends":     {half: func(pb.Maintenance_SnapshotServer) error { return nil }},
		"the member hangs":    {},
		"the hash is missing": {hash: func(pb.Maintenance_SnapshotServer) error { return nil }},
		"the hash is wrong": {hash: func(s pb.Maintenance_SnapshotServer) error {
			return s.Send(&pb.SnapshotResponse{Blob: make([]byte, sha256.Size)})
		}},
	} {
		for _, version := range []int{1, 2} {
			t.Run(name+" "+strconv.Itoa(version), func(t *testing.T) {
				t.Parallel()
				m := *broken
				m.database = database(t, 3000*512)
				p := newProxied(t, &m, version)
				if name == "the member hangs" {
					m.half = func(s pb.Maintenance_SnapshotServer) error { return m.hang(s, p.rest.stall) }
				}
				response := p.get(t.Context(), "/c/snapshot")
				got, err := io.ReadAll(response.body)
				if err == nil || response.code != http.StatusOK || len(got) > len(m.database) {
					t.Errorf("%d, %d bytes, and the end looked good: %v", response.code, len(got), err)
				}
			})
		}
	}
}

func TestSnapshotRequestIsRejected(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, path string
		change     func(*ProxyREST)
		code       int
		says       string
	}{
		{"path other than snapshot is not found", "/c/logs", nil, http.StatusNotFound, "logs"},
		{"empty path is not found", "/c/", nil, http.StatusNotFound, ""},
		{"cluster that does not exist is not found", "/d/snapshot", nil, http.StatusNotFound, `"d" not found`},
		{"member that does not exist is not found", "/c/snapshot?member=c-y", nil, http.StatusNotFound, "c-y"},
		{"server without a kube-apiserver is unavailable", "/c/snapshot", func(r *ProxyREST) { r.prober = prober.New(nil, nil, clock.RealClock{}) }, http.StatusServiceUnavailable, "kube-apiserver"},
		{"cluster without members is unavailable", "/c/snapshot", func(r *ProxyREST) {
			r.prober = prober.New(fake.NewClientset(), etcd.NewPool(etcd.PoolConfig{}), clock.RealClock{})
		}, http.StatusServiceUnavailable, "no member"},
		{"stream above the limit is rejected", "/c/snapshot", func(r *ProxyREST) {
			for namespace := range maxStreams {
				_, _ = r.streams.Acquire(strconv.Itoa(namespace))
			}
		}, http.StatusTooManyRequests, "8 snapshots already"},
		{"stream above the share of its namespace is rejected", "/c/snapshot", func(r *ProxyREST) {
			for range maxStreams {
				_, _ = r.streams.Acquire("default")
			}
		}, http.StatusTooManyRequests, "free places, which are for other namespaces"},
		{"user without the verb create is forbidden", "/c/snapshot", func(r *ProxyREST) {
			r.guard.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				return authorizer.DecisionNoOpinion, "no rule allows it", nil
			})
		}, http.StatusForbidden, "verb create on etcdclusters/proxy"},
		{"failure of the authorizer is an internal error", "/c/snapshot", func(r *ProxyREST) {
			r.guard.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				return authorizer.DecisionNoOpinion, "", errors.New("no response")
			})
		}, http.StatusInternalServerError, "no response"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newProxied(t, &member{database: database(t, 512)}, 2)
			if test.change != nil {
				test.change(p.rest)
			}
			response := p.get(t.Context(), test.path)
			said, err := io.ReadAll(response.body)
			if err != nil || response.code != test.code || !strings.Contains(string(said), test.says) {
				t.Errorf("%d %s (%v), want %d and %q", response.code, said, err, test.code, test.says)
			}
		})
	}
}

// The second question is about the verb create, of the same user, object and
// subresource.
func TestSnapshotAsksForCreate(t *testing.T) {
	t.Parallel()
	p := newProxied(t, &member{database: database(t, 512)}, 2)
	asked := make(chan authorizer.Attributes, 1)
	p.rest.guard.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		asked <- a
		return authorizer.DecisionAllow, "", nil
	})
	if response := p.get(t.Context(), "/c/snapshot"); response.code != http.StatusOK {
		t.Errorf("status %d", response.code)
	}
	a := <-asked
	if a.GetUser().GetName() != "reader" || a.GetVerb() != "create" || a.GetResource() != "etcdclusters" || a.GetSubresource() != "proxy" ||
		a.GetName() != "c" || a.GetNamespace() != ns || a.GetAPIGroup() != v1beta2.SchemeGroupVersion.Group || !a.IsResourceRequest() {
		t.Errorf("asked about %+v", a)
	}
}

// A member that pauses is waited for, however short the time is that a client has.
func TestSnapshotOfAMemberThatPauses(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, 2} {
		// The client need not read for the server to write so little.
		raw := database(t, 8<<10)
		registerMetrics()
		p := &proxied{T: t, rest: newProxyREST(nil, nil, rights.Guard{})}
		source := io.MultiReader(bytes.NewReader(raw[:1000]), pausing{time.After(3 * shortStall)}, bytes.NewReader(raw[1000:]))
		p.rest.stall = shortStall
		sent := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
			if outcome, err := p.rest.send(w, source); err != nil {
				t.Errorf("%s: %v", outcome, err)
			}
		}))
		sent.EnableHTTP2 = version == 2
		sent.StartTLS()
		p.url, p.http = sent.URL, sent.Client()
		got, err := io.ReadAll(p.get(t.Context(), "/").body)
		if err != nil || !bytes.Equal(got, raw) {
			t.Errorf("HTTP/%d: %d bytes of %d, %v", version, len(got), len(raw), err)
		}
		sent.Close()
	}
}

// A client that disconnects, or reads nothing, leaves no stream and releases the limit.
func TestSnapshotEndsWithItsClient(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(context.CancelFunc){
		"disconnects":   func(cancel context.CancelFunc) { cancel() },
		"reads nothing": func(context.CancelFunc) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &member{database: database(t, 64<<20)}
			p := newProxied(t, m, 2)
			p.rest.stall = shortStall
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			response := p.get(ctx, "/c/snapshot")
			if _, err := io.ReadFull(response.body, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			gone(cancel)
			<-m.ended
			etcdtest.Eventually(t, "the stream to be released", func() error {
				if n := p.rest.streams.Taken(); n > 0 {
					return errors.New("it is taken")
				}
				return nil
			})
		})
	}
}
