// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clientca

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/cert"
)

func newCA(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func authenticationConfig(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: configMapName}, Data: data}
}

// clusterCAs is what the delegated authentication sets up: two bundles that are
// loaded from the cluster once they run.
func clusterCAs(t *testing.T, kube *fake.Clientset) dynamiccertificates.CAContentProvider {
	t.Helper()
	var both []dynamiccertificates.CAContentProvider
	for _, key := range []string{clientKey, proxyKey} {
		provider, err := dynamiccertificates.NewDynamicCAFromConfigMapController(key, metav1.NamespaceSystem, configMapName, key, kube)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, provider)
	}
	return dynamiccertificates.NewUnionCAContentProvider(both...)
}

func TestStartReturnsWhenAllIsLoaded(t *testing.T) {
	t.Parallel()
	client, _ := newCA(t, "client")
	proxy, _ := newCA(t, "proxy")
	for _, data := range []map[string]string{
		{clientKey: string(client), proxyKey: string(proxy)},
		{proxyKey: string(proxy)},
	} {
		kube := fake.NewClientset(authenticationConfig(data))
		loaded := clusterCAs(t, kube)
		serving := &genericapiserver.SecureServingInfo{ClientCA: loaded}
		if err := Start(t.Context(), serving, kube, Keys(false, false)); err != nil {
			t.Fatal(err)
		}
		if key, err := findMissingKey(t.Context(), loaded, kube, Keys(false, false)); err != nil || key != "" {
			t.Errorf("%s is missing (%v)", key, err)
		}
	}
}

// TestStartWaits: a kube-apiserver that is away for a moment is waited for.
func TestStartWaits(t *testing.T) {
	t.Parallel()
	proxy, _ := newCA(t, "proxy")
	kube := fake.NewClientset(authenticationConfig(map[string]string{proxyKey: string(proxy)}))
	var asked atomic.Int32
	kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return asked.Add(1) < 3, nil, errors.New("connection refused")
	})
	if err := Start(t.Context(), &genericapiserver.SecureServingInfo{ClientCA: clusterCAs(t, kube)}, kube, Keys(true, false)); err != nil {
		t.Fatal(err)
	}
	if asked.Load() < 3 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Start(ctx, &genericapiserver.SecureServingInfo{ClientCA: clusterCAs(t, kube)}, kube, Keys(false, false))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestNothingToLoad(t *testing.T) {
	t.Parallel()
	if err := Start(t.Context(), &genericapiserver.SecureServingInfo{}, nil, Keys(false, false)); err != nil {
		t.Error(err)
	}
	if keys := Keys(true, true); len(keys) != 0 {
		t.Errorf("keys %q, want none", keys)
	}
}

// TestNoHint connects with a certificate of a CA that the listener does not
// know (yet). Go's client would not show the certificate if the listener named other CAs.
func TestNoHint(t *testing.T) {
	t.Parallel()
	known, _ := newCA(t, "known")
	provider, err := dynamiccertificates.NewStaticCAContent("known", known)
	if err != nil {
		t.Fatal(err)
	}
	serverCert, serverKey := newCA(t, "localhost")
	shown, err := dynamiccertificates.NewStaticCertKeyContent("serving", serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := &genericapiserver.SecureServingInfo{Listener: listener, ClientCA: provider, Cert: shown}
	if err := Start(t.Context(), serving, nil, nil); err != nil {
		t.Fatal(err)
	}
	var certificates atomic.Int32
	handler := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		certificates.Store(int32(len(req.TLS.PeerCertificates)))
	})
	stop := make(chan struct{})
	stopped, _, err := serving.Serve(handler, time.Second, stop)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { close(stop); <-stopped }()

	clientCert, clientKey := newCA(t, "unknown")
	pair, err := tls.X509KeyPair(clientCert, clientKey)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(serverCert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{pair}}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if certificates.Load() == 0 {
		t.Error("the client did not show its certificate")
	}
}
