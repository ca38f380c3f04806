// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// TestStorageClassOfRealStores: what a request names reaches a real server of each kind, for
// objects of one part and of several, and the server takes it.
func TestStorageClassOfRealStores(t *testing.T) {
	for name, test := range map[string]struct {
		start func(testing.TB) *realStore
		class string
		// said returns what a request that creates an object says of its class; "" if it is
		// another request.
		said func(r *http.Request, body string) string
	}{
		"S3": {realS3, "STANDARD_IA", func(r *http.Request, _ string) string { return r.Header.Get("X-Amz-Storage-Class") }},
		"GCS": {realGCS, "NEARLINE", func(_ *http.Request, body string) string {
			if strings.Contains(body, `"storageClass":"NEARLINE"`) {
				return "NEARLINE"
			}
			return ""
		}},
		"ABS": {realABS, "Cool", func(r *http.Request, _ string) string { return r.Header.Get("X-Ms-Access-Tier") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := test.start(t)
			var mu sync.Mutex
			said := 0
			front := frontOf(t, s.endpoint, func(r *http.Request, body string) {
				mu.Lock()
				defer mu.Unlock()
				if test.said(r, body) == test.class {
					said++
				}
			})
			place := s.at(t, front, s.right)
			place.CADir, place.StorageClass = storetest.Secret(t, map[string]string{caFile: string(storetest.CA(t))}), test.class
			store, err := openStore(t.Context(), place, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			for i, size := range []int{10, objectstore.PartSize + 10} {
				key := strings.Repeat("k", i+1)
				if _, err := store.Put(t.Context(), key, onlyReader{bytes.NewReader(make([]byte, size))}, objectstore.PutOptions{Overwrite: true}); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				if said != i+1 {
					t.Errorf("%d bytes: %d requests named the class, want %d", size, said, i+1)
				}
				mu.Unlock()
				if got, err := s.open(t).Stat(t.Context(), key); err != nil || got.Size != int64(size) {
					t.Errorf("stored are %d of %d bytes: %v", got.Size, size, err)
				}
			}
		})
	}
}

type onlyReader struct{ *bytes.Reader }

// frontOf is a server before a store that sees the requests. Signatures are for the host of the
// store, so it passes that on.
func frontOf(t *testing.T, endpoint string, see func(r *http.Request, start string)) string {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: storetest.Transport(t, nil),
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := make([]byte, 1<<10)
		n := 0
		if r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
			n, _ = r.Body.Read(start)
			r.Body = bytesThenBody{bytes.NewReader(start[:n]), r.Body}
		}
		see(r, string(start[:n]))
		proxy.ServeHTTP(w, r)
	}))
	server.TLS = storetest.ServerTLS(t)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// bytesThenBody gives what was read before, and then the rest.
type bytesThenBody struct {
	first *bytes.Reader
	rest  io.ReadCloser
}

// Read implements io.Reader.
func (b bytesThenBody) Read(p []byte) (int, error) {
	if b.first.Len() > 0 {
		return b.first.Read(p)
	}
	return b.rest.Read(p)
}

// Close implements io.Closer.
func (b bytesThenBody) Close() error { return b.rest.Close() }
