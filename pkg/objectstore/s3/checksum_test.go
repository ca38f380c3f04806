// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

const twoParts = objectstore.PartSize + 12345

// mustStore stores data with a proof and reads it back.
func mustStore(t *testing.T, store *Store, key string, size int) {
	t.Helper()
	data := make([]byte, size)
	_, _ = rand.Read(data) // it never fails
	written, err := store.Put(t.Context(), key, io.MultiReader(bytes.NewReader(data)), objectstore.PutOptions{Prove: true})
	if err != nil || written.Checksum != objectstore.ChecksumCRC64NVME {
		t.Errorf("%d bytes: %+v, %v", size, written, err)
		return
	}
	got, err := objectstore.ReadAll(t.Context(), store, key, twoParts)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes: read %d of another content, %v", size, len(got), err)
	}
}

// TestAWS takes the server for AWS, which is found without an endpoint: every request has a
// checksum that it must know.
func TestAWS(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", storetest.S3(t))
	secret := storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey)
	store := open(t, func(c *Config) { c.CredentialsDir = secret }, nil)
	if !store.aws {
		t.Fatal("it is not taken for AWS")
	}
	if err := makeBucket(t, store); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1000, twoParts} {
		mustStore(t, store, fmt.Sprintf("k-%d", size), size)
	}
}

// TestStoreThatRejectsChecksums: a server that does not know the checksum of the whole object
// gets the upload without, and no part of the first one stays.
func TestStoreThatRejectsChecksums(t *testing.T) {
	endpoint := storetest.S3(t)
	secret := storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey)
	if err := makeBucket(t, open(t, func(c *Config) { c.Endpoint, c.CredentialsDir = endpoint, secret }, nil)); err != nil {
		t.Fatal(err)
	}
	for code, status := range map[string]int{"NotImplemented": http.StatusNotImplemented, "InvalidArgument": http.StatusBadRequest} {
		t.Run(code, func(t *testing.T) {
			proxy := storetest.NewProxy(t)
			store := open(t, func(c *Config) { c.Endpoint, c.CredentialsDir = endpoint, secret }, proxy)
			var rejected atomic.Int64
			proxy.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("X-Amz-Checksum-Algorithm") == "" && r.Header.Get("X-Amz-Checksum-Crc64nvme") == "" {
					return false
				}
				rejected.Add(1)
				w.Header().Set("Content-Type", "application/xml")
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>what is this?</Message></Error>", code)
				return true
			})
			mustStore(t, store, code, twoParts)
			if rejected.Load() == 0 {
				t.Error("nothing was rejected: nothing was tested")
			}
		})
	}
}
