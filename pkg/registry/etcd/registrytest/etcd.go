// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/install"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/sharing"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/storage"
)

// server is the etcd that all tests of a package share; each has its own prefix.
var (
	server   *embed.Etcd
	endpoint string
	prefixes atomic.Int64
)

// Main starts etcd, runs the tests and ends the process: call it from TestMain.
func Main(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd for tests:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "registrytest-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	socket := url.URL{Scheme: "unix", Path: filepath.Join(dir, "etcd.sock")}
	endpoint = socket.String()

	config := embed.NewConfig()
	config.Dir = filepath.Join(dir, "data")
	config.ListenPeerUrls, config.ListenClientUrls = nil, []url.URL{socket}
	config.EnableGRPCGateway = false
	config.UnsafeNoFsync = true
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	if server, err = embed.StartEtcd(config); err != nil {
		return 0, err
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
		return m.Run(), nil
	case <-server.Server.StopNotify():
		return 0, errors.New("it stopped")
	}
}

// Storage is an empty place in etcd and what a store needs to use it.
type Storage struct {
	Scheme  *runtime.Scheme
	Options generic.RESTOptionsGetter
	// Uncached leaves out the watch cache, for tests that watch from the beginning
	// of time, which other tests share.
	Uncached generic.RESTOptionsGetter
	prefix   string
}

// New returns a place of its own for a test.
func New(t testing.TB) *Storage {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{install.Install, autoscalingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})

	prefix := fmt.Sprintf("/test-%d", prefixes.Add(1))
	config := storagebackend.NewDefaultConfig(prefix, nil)
	config.Transport.ServerList = []string{endpoint}
	config.CompactionInterval, config.DBMetricPollInterval = 0, 0
	factory := storage.NewFactory(*config, runtime.ContentTypeProtobuf, scheme, serializer.NewCodecFactory(scheme), v1beta2.SchemeGroupVersion)
	options := genericoptions.NewEtcdOptions(config)
	options.StorageConfig.CountMetricPollPeriod = 0
	uncached := *options
	uncached.EnableWatchCache = false
	return &Storage{
		Scheme:   scheme,
		Options:  sharing.WatchCaches(options.CreateRESTOptionsGetter(factory, nil)),
		Uncached: uncached.CreateRESTOptionsGetter(factory, nil),
		prefix:   prefix,
	}
}

// Await returns when the watch cache of a store is filled: before that it rejects
// watches.
func Await(t testing.TB, store *genericregistry.Store) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return store.ReadinessCheck() == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Values returns what is stored, as it is in etcd.
func (s *Storage) Values(ctx context.Context, t testing.TB) map[string][]byte {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	response, err := client.Get(ctx, s.prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]byte{}
	for _, kv := range response.Kvs {
		values[string(kv.Key)] = kv.Value
	}
	return values
}

// Context is that of a request to a resource of the group in a namespace.
func Context(ctx context.Context, namespace, resource, subresource string) context.Context {
	return request.WithRequestInfo(request.WithNamespace(ctx, namespace), &request.RequestInfo{
		IsResourceRequest: true,
		Namespace:         namespace,
		APIGroup:          v1beta2.SchemeGroupVersion.Group,
		APIVersion:        v1beta2.SchemeGroupVersion.Version,
		Resource:          resource,
		Subresource:       subresource,
	})
}
