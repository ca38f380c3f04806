// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

func open(t *testing.T, endpoint, bucket, keyID string, proxy *storetest.Proxy) *Store {
	t.Helper()
	transport := storetest.Transport(t, proxy)
	secret := storetest.Secret(t, map[string]string{keyIDFile: keyID, keySecretFile: storetest.SecretKey})
	store, err := New(Config{Bucket: bucket, Endpoint: endpoint, CredentialsDir: secret, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestAcceptance(t *testing.T) {
	endpoint, _ := storetest.OSS(t)
	const bucket = "backups"
	if _, err := open(t, endpoint, bucket, storetest.AccessKey, nil).client.PutBucket(t.Context(), &oss.PutBucketRequest{Bucket: oss.Ptr(bucket)}); err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, storetest.Options{
		Open: func(t *testing.T) objectstore.Store { return open(t, endpoint, bucket, storetest.AccessKey, nil) },
		Through: func(t *testing.T, p *storetest.Proxy) objectstore.Store {
			return open(t, endpoint, bucket, storetest.AccessKey, p)
		},
		Denied:    func(t *testing.T) objectstore.Store { return open(t, endpoint, bucket, "another", nil) },
		Missing:   func(t *testing.T) objectstore.Store { return open(t, endpoint, "none", storetest.AccessKey, nil) },
		Leftovers: true,
		Proves:    true,
	})
}

func TestBadSecrets(t *testing.T) {
	for name, entries := range map[string]map[string]string{
		"nothing":   {},
		"no secret": {keyIDFile: "id"},
		"empty":     {keyIDFile: "id", keySecretFile: " \n"},
	} {
		if _, err := New(Config{Bucket: "b", CredentialsDir: storetest.Secret(t, entries)}); !errors.Is(err, objectstore.ErrCredentials) {
			t.Errorf("%s: got %v, want ErrCredentials", name, err)
		}
	}
}

func TestRegionOfEndpoint(t *testing.T) {
	for _, test := range []struct{ host, secret, want string }{
		{"oss-cn-hangzhou.aliyuncs.com", "", "cn-hangzhou"},
		{"oss-eu-central-1.aliyuncs.com", "", "eu-central-1"},
		{"oss-ap-southeast-1-internal.aliyuncs.com", "", "ap-southeast-1"},
		{"vpc100-oss-cn-beijing.aliyuncs.com", "", "cn-beijing"},
		{"oss-cn-hangzhou.aliyuncs.com", "cn-beijing", "cn-hangzhou"},
		{"oss-accelerate.aliyuncs.com", "", ""},
		{"oss-accelerate.aliyuncs.com", "cn-beijing", "cn-beijing"},
		{"oss-accelerate-overseas.aliyuncs.com", "cn-beijing", "cn-beijing"},
		{"oss.example.com", "cn-beijing", "cn-beijing"},
		{"oss.example.com", "", ""},
		{"127.0.0.1", "", ""},
	} {
		if got := regionOf(test.host, test.secret); got != test.want {
			t.Errorf("%s, and %q in the Secret: got %q, want %q", test.host, test.secret, got, test.want)
		}
	}
}

// TestRegionOfTheSecretSigns: with a region every request has the signature that accounts of today accept.
func TestRegionOfTheSecretSigns(t *testing.T) {
	for region, want := range map[string]string{"cn-beijing": "OSS4-HMAC-SHA256 ", "": "OSS "} {
		signed := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			signed = r.Header.Get("Authorization")
			w.WriteHeader(http.StatusForbidden)
		}))
		entries := map[string]string{keyIDFile: "id", keySecretFile: "secret"}
		if region != "" {
			entries[regionFile] = region
		}
		store, err := New(Config{Bucket: "bucket", Endpoint: server.URL, CredentialsDir: storetest.Secret(t, entries), Transport: &http.Transport{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Stat(t.Context(), "key"); err == nil || !strings.HasPrefix(signed, want) {
			t.Errorf("region %q: signed with %.30q, want %q", region, signed, want)
		}
		server.Close()
	}
}

// TestEndpointsAreSecure: an endpoint without a scheme is reached over TLS, and so is the
// default one.
func TestEndpointsAreSecure(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                             "https://oss-cn-hangzhou.aliyuncs.com",
		"oss-cn-beijing.aliyuncs.com":  "https://oss-cn-beijing.aliyuncs.com",
		"http://oss.example.com:8080":  "http://oss.example.com:8080",
		"https://oss.example.com:8080": "https://oss.example.com:8080",
	} {
		if got, err := address(endpoint); err != nil || got.String() != want {
			t.Errorf("%q: got %v, %v; want %s", endpoint, got, err, want)
		}
	}
}
