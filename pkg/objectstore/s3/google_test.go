// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

var signedHeaders = regexp.MustCompile(`SignedHeaders=([^,]*)`)

// TestGoogleGetsNoSignedAcceptEncoding: Google's servers change Accept-Encoding before they check the signature. Other
// servers get the signature as the SDK makes it. Both receive the value identity.
func TestGoogleGetsNoSignedAcceptEncoding(t *testing.T) {
	var signed, accepted atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed.Store(signedHeaders.FindString(r.Header.Get("Authorization")))
		accepted.Store(r.Header.Get("Accept-Encoding"))
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	for endpoint, isSigned := range map[string]bool{
		"http://storage.googleapis.com": false, "http://me-west1.storage.googleapis.com": false, "http://storage.example.com": true,
		"http://storage.googleapis.com.example.com": true,
	} {
		store := open(t, func(c *Config) {
			c.Endpoint, c.CredentialsDir = endpoint, storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey)
			c.Transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(server.URL, "http://"))
			}
		}, nil)
		if _, err := store.Get(t.Context(), "k", 0, -1); err == nil {
			t.Fatalf("%s: it did not reach the server of the test", endpoint)
		}
		headers, _ := signed.Load().(string)
		if !strings.Contains(headers, "host;") || strings.Contains(headers, "accept-encoding") != isSigned || accepted.Load() != "identity" {
			t.Errorf("%s: signed are %q, Accept-Encoding is %q", endpoint, headers, accepted.Load())
		}
	}
}
