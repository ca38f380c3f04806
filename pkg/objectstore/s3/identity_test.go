// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// TestIdentityOfTheWorkload: without a secret, the token that a pod is given for its
// service account is exchanged for a key.
func TestIdentityOfTheWorkload(t *testing.T) {
	const role = "arn:aws:iam::1:role/backups"
	exchanged := 0
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "AssumeRoleWithWebIdentity" || r.Form.Get("RoleArn") != role || r.Form.Get("WebIdentityToken") != "token of the pod" {
			http.Error(w, "unexpected", http.StatusBadRequest)
			return
		}
		exchanged++
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>session</SessionToken><Expiration>%s</Expiration>
</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, storetest.AccessKey, storetest.SecretKey, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(sts.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token of the pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	var authorization, session string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization, session = r.Header.Get("Authorization"), r.Header.Get("X-Amz-Security-Token")
		w.Header().Set("Content-Length", "7")
		w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ROLE_ARN": role, "AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ENDPOINT_URL_STS": sts.URL, "AWS_REGION": "us-east-1", "HOME": t.TempDir(),
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
	} {
		t.Setenv(name, value)
	}
	store := open(t, func(c *Config) { c.Endpoint = server.URL }, nil)
	for range 2 {
		object, err := store.Stat(t.Context(), "k")
		if err != nil || object.Size != 7 || !strings.Contains(authorization, "Credential="+storetest.AccessKey+"/") || session != "session" {
			t.Errorf("%+v, %v; asked with %q and %q", object, err, authorization, session)
		}
	}
	if exchanged != 1 {
		t.Errorf("the token was exchanged %d times", exchanged)
	}
}

// TestIdentityWithoutARegion: nothing has to name a region for the token of the workload to be exchanged. The hosts
// that the store dials tell whether it comes so far.
func TestIdentityWithoutARegion(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token of the pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ROLE_ARN": "arn:aws:iam::1:role/backups", "AWS_WEB_IDENTITY_TOKEN_FILE": token, "HOME": t.TempDir(),
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
	} {
		t.Setenv(name, value)
	}
	ctx, cancel := context.WithCancel(t.Context())
	dialed := ""
	store, err := New(ctx, Config{Bucket: "b", Endpoint: "https://s3.example.com", Transport: &http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = address
			cancel()
			return nil, net.ErrClosed
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Stat(ctx, "k"); err == nil || dialed != "sts.us-east-1.amazonaws.com:443" {
		t.Errorf("dialed %q, error %v", dialed, err)
	}
}
