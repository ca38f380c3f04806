// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

// standalone is a server without a kube-apiserver: it authorizes every request.
type standalone struct {
	config *rest.Config
	client versioned.Interface
	etcd   *clientv3.Client
	prefix string
}

func startStandalone(t *testing.T, args ...string) *standalone {
	t.Helper()
	storage, err := embeddedetcd.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Stop)
	return startServer(t, storage, parse(t, append(args, "--etcd-servers="+storage.Endpoint())...))
}

// startServer starts a server with a storage that runs.
func startServer(t *testing.T, storage *embeddedetcd.Server, options *Options) *standalone {
	t.Helper()
	var err error
	options.ServerRun.ShutdownDelayDuration = 0
	options.Recommended.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	options.Recommended.CoreAPI, options.Recommended.Authentication = nil, nil
	options.Recommended.Authorization, options.Recommended.Admission = nil, nil
	options.Recommended.Features.EnablePriorityAndFairness = false
	if options.Recommended.SecureServing.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := options.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		t.Fatal(err)
	}
	config, err := options.Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	server, err := config.Complete().New()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Generic.PrepareRun().RunWithContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	started := &standalone{config: config.Generic.LoopbackClientConfig, prefix: options.Recommended.Etcd.StorageConfig.Prefix}
	if started.client, err = versioned.NewForConfig(started.config); err != nil {
		t.Fatal(err)
	}
	if started.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{storage.Endpoint()}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { started.etcd.Close() })
	started.awaitReady(t)
	return started
}

func (s *standalone) awaitReady(t *testing.T) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = s.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("not ready: %v", last)
	}
}

// stored returns the bytes of the only value below the prefix.
func (s *standalone) stored(t *testing.T) []byte {
	t.Helper()
	response, err := s.etcd.Get(t.Context(), s.prefix+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	var values [][]byte
	for _, kv := range response.Kvs {
		if strings.Contains(string(kv.Key), "/etcdclusters/") {
			values = append(values, kv.Value)
		}
	}
	if len(values) != 1 {
		t.Fatalf("%d clusters are stored, want 1", len(values))
	}
	return values[0]
}

func newCluster(name string) *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.6.16"},
	}
}

// TestStoresProtobuf reads the bytes in etcd: the flag alone does nothing in a
// server that is made of the recommended options.
func TestStoresProtobuf(t *testing.T) {
	t.Parallel()
	server := startStandalone(t)
	created, err := server.client.EtcdV1beta2().EtcdClusters("default").Create(t.Context(), newCluster("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := server.stored(t); !bytes.HasPrefix(got, []byte("k8s\x00")) {
		t.Errorf("stored %.20q, want the prefix of protobuf", got)
	}
	if created.Generation != 1 || created.Spec.Repository != v1beta2.DefaultRepository {
		t.Errorf("unexpected object %+v", created)
	}
}

// TestStoresJSONOnRequest checks that the flag counts, and that what another
// encoding left is read.
func TestStoresJSONOnRequest(t *testing.T) {
	t.Parallel()
	server := startStandalone(t, "--storage-media-type=application/json")
	clusters := server.client.EtcdV1beta2().EtcdClusters("default")
	if _, err := clusters.Create(t.Context(), newCluster("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := server.stored(t); !bytes.HasPrefix(got, []byte("{")) {
		t.Errorf("stored %.20q, want JSON", got)
	}
	if got, err := clusters.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || got.Spec.Version != "3.6.16" {
		t.Errorf("read %v %v", got, err)
	}
}

// TestTooLargeIsTheUsersError: a request that etcd would reject never reaches etcd, nor does
// what is larger than a request may be.
func TestTooLargeIsTheUsersError(t *testing.T) {
	t.Parallel()
	server := startStandalone(t)
	clusters := server.client.EtcdV1beta2().EtcdClusters("default")
	for _, test := range []struct {
		name  string
		bytes int
		is    func(error) bool
	}{
		{"a little more than fits", genericstore.MaxObjectBytes + 1024, apierrors.IsInvalid},
		{"more than etcd's client sends", 2_500_000, apierrors.IsInvalid},
		{"more than a request may have", 4_000_000, apierrors.IsRequestEntityTooLargeError},
	} {
		large := newCluster("large")
		large.Spec.Etcd = &v1beta2.EtcdOptions{ExtraArgs: []string{"--max-txn-ops=" + strings.Repeat("1", test.bytes)}}
		if _, err := clusters.Create(t.Context(), large, metav1.CreateOptions{}); !test.is(err) {
			t.Errorf("%s: got %.200v", test.name, err)
		}
	}
}

// TestReadiness names the checks that a load balancer relies on.
func TestReadiness(t *testing.T) {
	t.Parallel()
	server := startStandalone(t)
	response, err := server.client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "true").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []string{"etcd", "etcd-readiness", "poststarthook/storage-readiness", "shutdown"} {
		if !strings.Contains(string(response), "[+]"+check+" ok") {
			t.Errorf("%s is not checked:\n%s", check, response)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	server := startStandalone(t)
	response, err := server.client.Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{"apiserver_request_total", "etcd_request_duration_seconds"} {
		if !bytes.Contains(response, []byte("\n"+metric)) {
			t.Errorf("no %s", metric)
		}
	}
}
