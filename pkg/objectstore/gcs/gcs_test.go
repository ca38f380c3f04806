// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

func open(t *testing.T, endpoint, bucket string, proxy *storetest.Proxy) *Store {
	t.Helper()
	transport := storetest.Transport(t, proxy)
	return openOver(t, endpoint, bucket, transport)
}

func openOver(t *testing.T, endpoint, bucket string, transport *http.Transport) *Store {
	t.Helper()
	t.Cleanup(transport.CloseIdleConnections)
	secret := storetest.Secret(t, map[string]string{tokenFile: storetest.Token})
	store, err := New(t.Context(), Config{Bucket: bucket, Endpoint: endpoint, CredentialsDir: secret, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// The stand-in checks no token, so denials are tested apart. All of the suite's objects are
// kept while they are sent, and then none is.
func TestAcceptance(t *testing.T) {
	endpoint := storetest.GCS(t)
	const bucket = "backups"
	if _, err := open(t, endpoint, bucket, nil).service.Buckets.Insert("p", &storage.Bucket{Name: bucket}).Do(); err != nil {
		t.Fatal(err)
	}
	for name, parts := range map[string]int{"Kept": keptParts, "Streamed": 0} {
		opened := func(t *testing.T, bucket string, p *storetest.Proxy) objectstore.Store {
			t.Helper()
			store := open(t, endpoint, bucket, p)
			store.keptParts = parts
			return store
		}
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Options{
				Open:    func(t *testing.T) objectstore.Store { return opened(t, bucket, nil) },
				Through: func(t *testing.T, p *storetest.Proxy) objectstore.Store { return opened(t, bucket, p) },
				Missing: func(t *testing.T) objectstore.Store { return opened(t, "none", nil) },
				Once:    parts == 0,
				Proves:  true,
			})
		})
	}
}

func TestBadSecrets(t *testing.T) {
	for name, entries := range map[string]map[string]string{
		"nothing":  {},
		"empty":    {tokenFile: ""},
		"no JSON":  {credentialsFile: canary},
		"no type":  {credentialsFile: `{"private_key":"` + canary + `"}`},
		"bad type": {credentialsFile: `{"type":"` + canary + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			transport, err := objectstore.NewTransport(objectstore.TransportConfig{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = New(t.Context(), Config{Bucket: "b", CredentialsDir: storetest.Secret(t, entries), Transport: transport})
			if !errors.Is(err, objectstore.ErrCredentials) {
				t.Errorf("got %v, want ErrCredentials", err)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the secret is in the error: %v", err)
			}
		})
	}
}
