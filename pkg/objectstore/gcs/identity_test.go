// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// TestIdentityOfTheWorkload: without a secret, the node tells a token for the service
// account of the pod, which goes with each request.
func TestIdentityOfTheWorkload(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		if strings.HasSuffix(r.URL.Path, "/token") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"access_token":"token-of-the-pod","expires_in":3600,"token_type":"Bearer"}`)
			return
		}
		_, _ = fmt.Fprint(w, "googleapis.com")
	}))
	t.Cleanup(node.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(node.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir())
	var authorization string
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"name":"k","size":"7","updated":"2026-01-02T03:04:05Z"}`)
	}))
	t.Cleanup(store.Close)
	transport, err := objectstore.NewTransport(objectstore.TransportConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	opened, err := New(t.Context(), Config{Bucket: "b", Endpoint: store.URL, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	object, err := opened.Stat(t.Context(), "k")
	if err != nil || object.Size != 7 || authorization != "Bearer token-of-the-pod" {
		t.Errorf("%+v, %v; asked with %q", object, err, authorization)
	}
}
