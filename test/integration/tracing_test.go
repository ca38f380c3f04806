// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// spans is a receiver of traces, as a collector of OpenTelemetry is.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu sync.Mutex
	// names of the spans of each trace, with the service that sent them.
	names map[string][]string
}

func (s *spans) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		service := ""
		for _, attribute := range resource.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				trace := hex.EncodeToString(span.GetTraceId())
				s.names[trace] = append(s.names[trace], service+": "+span.GetName())
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func (s *spans) of(trace string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.names[trace]...)
}

// TestTracing sends a request with a trace of its own through the kube-apiserver, and waits for the
// spans that our server sends to a receiver. A request without a trace has none there.
func TestTracing(t *testing.T) {
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	received := &spans{names: map[string][]string{}}
	config := filepath.Join(t.TempDir(), "tracing.yaml")
	content := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: 0\n", receive(t, received))
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	restart(t, syscall.SIGTERM, "--tracing-config-file="+config)
	defer restart(t, syscall.SIGTERM)

	const sampled, unsampled = "0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319d"
	traced(t, namespace, "00-"+unsampled+"-b7ad6b7169203331-00")
	traced(t, namespace, "00-"+sampled+"-b7ad6b7169203331-01")
	eventually(t, func(context.Context) error {
		if len(received.of(sampled)) == 0 {
			return errorf("no span of trace %s was received", sampled)
		}
		return nil
	})
	t.Logf("spans: %q", received.of(sampled))
	if left := received.of(unsampled); len(left) > 0 {
		t.Errorf("spans of a trace that is not sampled: %q", left)
	}
}

// receive serves a receiver of traces on a loopback address, and returns the address.
func receive(t *testing.T, received *spans) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, received)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// traced gets a cluster as an administrator, with a header traceparent.
func traced(t *testing.T, namespace, parent string) {
	t.Helper()
	client, err := rest.HTTPClientFor(env.admin)
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/etcdclusters/a", env.admin.Host, v1beta2.SchemeGroupVersion, namespace)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("traceparent", parent)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %d", response.StatusCode)
	}
}
