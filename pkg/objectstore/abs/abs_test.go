// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

func open(t *testing.T, endpoint, containerName, key string, proxy *storetest.Proxy) *Store {
	t.Helper()
	transport, err := objectstore.NewTransport(objectstore.TransportConfig{Stall: storetest.Stall})
	if err != nil {
		t.Fatal(err)
	}
	if proxy != nil {
		proxy.Use(transport)
	}
	t.Cleanup(transport.CloseIdleConnections)
	secret := storetest.Secret(t, map[string]string{accountFile: storetest.Account, keyFile: key})
	store, err := New(Config{Container: containerName, Endpoint: endpoint, CredentialsDir: secret, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestAcceptance(t *testing.T) {
	endpoint := storetest.Azure(t)
	const name = "backups"
	if _, err := open(t, endpoint, name, storetest.AccountKey, nil).client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, storetest.Options{
		Open: func(t *testing.T) objectstore.Store { return open(t, endpoint, name, storetest.AccountKey, nil) },
		Through: func(t *testing.T, p *storetest.Proxy) objectstore.Store {
			return open(t, endpoint, name, storetest.AccountKey, p)
		},
		Denied: func(t *testing.T) objectstore.Store {
			return open(t, endpoint, name, base64.StdEncoding.EncodeToString([]byte("wrong")), nil)
		},
		Missing: func(t *testing.T) objectstore.Store { return open(t, endpoint, "none", storetest.AccountKey, nil) },
	})
}

func TestBadSecrets(t *testing.T) {
	const canary = "canary-5d1c!"
	for name, entries := range map[string]map[string]string{
		"nothing":       {},
		"no account":    {keyFile: storetest.AccountKey},
		"no Base64":     {accountFile: "a", keyFile: canary},
		"unknown cloud": {accountFile: "a", keyFile: storetest.AccountKey, cloudFile: canary},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Container: "c", CredentialsDir: storetest.Secret(t, entries)})
			if !errors.Is(err, objectstore.ErrCredentials) {
				t.Errorf("got %v, want ErrCredentials", err)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the secret is in the error: %v", err)
			}
		})
	}
}

func TestAccountURL(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                                   "https://acc.blob.core.windows.net",
		"http://127.0.0.1:10000":             "http://127.0.0.1:10000/acc",
		"http://127.0.0.1:10000/other":       "http://127.0.0.1:10000/other",
		"https://acc.blob.local.azurestack/": "https://acc.blob.local.azurestack",
		"acc.privatelink.blob.example":       "https://acc.privatelink.blob.example",
	} {
		if got, err := accountURL(endpoint, "acc", environments[""].suffix); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", endpoint, got, err, want)
		}
	}
}
