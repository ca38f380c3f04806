// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

const bucket = "backups"

func open(t *testing.T, change func(*Config), proxy *storetest.Proxy) *Store {
	t.Helper()
	transport := storetest.Transport(t, proxy)
	c := Config{Bucket: bucket, ForcePathStyle: true, Transport: transport}
	change(&c)
	store, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func makeBucket(t *testing.T, store *Store) error {
	t.Helper()
	name := bucket
	_, err := store.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	return err
}

func TestAcceptance(t *testing.T) {
	endpoint := storetest.S3(t)
	secret := storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey)
	good := func(c *Config) { c.Endpoint, c.CredentialsDir = endpoint, secret }
	if err := makeBucket(t, open(t, good, nil)); err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, storetest.Options{
		Open:    func(t *testing.T) objectstore.Store { return open(t, good, nil) },
		Through: func(t *testing.T, p *storetest.Proxy) objectstore.Store { return open(t, good, p) },
		Denied: func(t *testing.T) objectstore.Store {
			return open(t, func(c *Config) {
				c.Endpoint, c.CredentialsDir = endpoint, storetest.AWSSecret(t, storetest.AccessKey, "wrong")
			}, nil)
		},
		Missing: func(t *testing.T) objectstore.Store {
			return open(t, func(c *Config) { good(c); c.Bucket = "none" }, nil)
		},
		Leftovers: true,
		Proves:    true,
	})
}

func TestBadSecrets(t *testing.T) {
	for name, entries := range map[string]map[string]string{
		"nothing":        {},
		"config only":    {"config": "[default]\nregion = r\n"},
		"no form":        {"credentials": canary + "\n\x00[", "config": canary},
		"no profile":     {"credentials": "[other]\naws_access_key_id = " + canary + "\naws_secret_access_key = " + canary + "\n"},
		"half a profile": {"credentials": "[default]\naws_access_key_id = " + canary + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			transport, err := objectstore.NewTransport(objectstore.TransportConfig{})
			if err != nil {
				t.Fatal(err)
			}
			store, err := New(t.Context(), Config{Bucket: "b", Endpoint: "http://127.0.0.1:1", CredentialsDir: storetest.Secret(t, entries), Transport: transport})
			if err == nil {
				_, err = store.Stat(t.Context(), "k")
			}
			if !errors.Is(err, objectstore.ErrCredentials) {
				t.Errorf("got %v, want ErrCredentials", err)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the secret is in the error: %v", err)
			}
		})
	}
}
