// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	store := newKnown(t)
	store.mustStat(t, store.open(t), "token-of-the-pod")
}

// known is a store that an identity uses.
type known struct {
	endpoint      string
	authorization string // of the last request
}

func newKnown(t *testing.T) *known {
	t.Helper()
	k := &known{}
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.authorization = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"name":"k","size":"7","updated":"2026-01-02T03:04:05Z"}`)
	}))
	t.Cleanup(store.Close)
	k.endpoint = store.URL
	return k
}

// open opens it without a secret.
func (k *known) open(t *testing.T) *Store {
	t.Helper()
	transport, err := objectstore.NewTransport(objectstore.TransportConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	opened, err := New(t.Context(), Config{Bucket: "b", Endpoint: k.endpoint, EndpointOfCloud: true, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func (k *known) mustStat(t *testing.T, opened *Store, token string) {
	t.Helper()
	if object, err := opened.Stat(t.Context(), "k"); err != nil || object.Size != 7 || k.authorization != "Bearer "+token {
		t.Errorf("%+v, %v; asked with %q", object, err, k.authorization)
	}
}

// federated sets what a pod has whose service account Google knows by federation: a file of
// credentials that names the service that exchanges the token of the pod for one of Google's.
func federated(t *testing.T, exchange string) {
	t.Helper()
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	credentials := filepath.Join(dir, "credentials.json")
	for name, text := range map[string]string{
		token: podToken,
		credentials: fmt.Sprintf(`{"type":"external_account","audience":%q,"subject_token_type":"urn:ietf:params:oauth:token-type:jwt",
"token_url":"%s/v1/token","credential_source":{"file":%q}}`, pool, exchange, token),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", credentials)
	t.Setenv("HOME", t.TempDir())
}

const (
	pool     = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k"
	podToken = "canary-token-of-the-pod"
)

// TestFederatedIdentity: a token of the pod is exchanged for one of Google's, once for all
// requests; where that is rejected, the error does not show the token.
func TestFederatedIdentity(t *testing.T) {
	exchanged, rejects := 0, false
	exchange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := r.ParseForm(); err != nil || r.Form.Get("subject_token") != podToken || r.Form.Get("audience") != pool ||
			r.Form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" || !strings.Contains(r.Form.Get("scope"), "devstorage.read_write") {
			http.Error(w, "unexpected", http.StatusBadRequest)
			return
		}
		if rejects {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"the token %s is expired"}`, podToken)
			return
		}
		exchanged++
		_, _ = fmt.Fprint(w, `{"access_token":"token-of-the-identity","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(exchange.Close)
	federated(t, exchange.URL)
	store := newKnown(t)
	first := store.open(t)
	for range 2 {
		store.mustStat(t, first, "token-of-the-identity")
	}
	if exchanged != 1 {
		t.Errorf("the token was exchanged %d times", exchanged)
	}
	rejects = true
	if _, err := store.open(t).Stat(t.Context(), "k"); !errors.Is(err, objectstore.ErrDenied) || strings.Contains(err.Error(), podToken) {
		t.Errorf("refused: %v", err)
	}
}
