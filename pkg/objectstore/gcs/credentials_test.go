// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

const canary = "canary-5d1c"

// keyFile is a key file of a service account, as Google gives it.
func keyFile(t *testing.T) map[string]string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"type": serviceAccount, "project_id": "p", "private_key_id": "1", "client_email": "a@p.iam.gserviceaccount.com", "client_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"auth_uri":    "https://accounts.google.com/o/oauth2/auth", "token_uri": "https://oauth2.googleapis.com/token",
		"auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs", "client_x509_cert_url": "https://www.googleapis.com/robot/v1/metadata/x509/a",
		"universe_domain": "googleapis.com",
	}
}

// openWith opens a bucket with a file of credentials.
func openWith(t *testing.T, endpoint string, file map[string]string) error {
	t.Helper()
	raw, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(t.Context(), Config{
		Bucket: "b", Endpoint: endpoint, CredentialsDir: storetest.Secret(t, map[string]string{credentialsFile: string(raw)}), Transport: storetest.Transport(t, nil),
	})
	return err
}

// TestCredentialsThatAreComplete: what Google's tools give for service accounts and for people
// is taken.
func TestCredentialsThatAreComplete(t *testing.T) {
	person := map[string]string{"type": authorizedUser, "client_id": "c", "client_secret": "s", "refresh_token": "r", "account": "", "universe_domain": "googleapis.com"}
	legacy := keyFile(t)
	legacy["token_uri"] = "https://accounts.google.com/o/oauth2/token"
	delete(legacy, "universe_domain")
	for name, file := range map[string]map[string]string{"service account": keyFile(t), "long ago": legacy, "person": person} {
		if err := openWith(t, "", file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCredentialsThatReachElsewhere: a file that names files, programs or addresses is not
// read, no request is sent, and the message names the entry and the field but no value.
func TestCredentialsThatReachElsewhere(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	node := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(node, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := func(field, value string) map[string]string {
		file := maps.Clone(keyFile(t))
		file[field] = value
		return file
	}
	for name, test := range map[string]struct {
		file  map[string]string
		words []string
	}{
		"federation":              {map[string]string{"type": "external_account", "token_url": elsewhere.URL, "audience": canary}, []string{"type external_account", "field type"}},
		"another account":         {map[string]string{"type": "impersonated_service_account", "service_account_impersonation_url": elsewhere.URL}, []string{"type impersonated_service_account"}},
		"a cloud of one's own":    {map[string]string{"type": "gdch_service_account", "token_uri": elsewhere.URL}, []string{"type gdch_service_account"}},
		"unknown":                 {map[string]string{"type": canary}, []string{"field type"}},
		"a source beside the key": {changed("credential_source", node), []string{"field credential_source"}},
		"letters of another case": {changed("Token_URI", elsewhere.URL), []string{"field Token_URI"}},
		"tokens from elsewhere":   {changed("token_uri", elsewhere.URL), []string{"token_uri"}},
		"tokens from a lookalike": {changed("token_uri", "https://googleapis.com.example.com/token"), []string{"token_uri"}},
		"tokens unencrypted":      {changed("token_uri", "http://oauth2.googleapis.com/token"), []string{"token_uri"}},
		"another universe":        {changed("universe_domain", "example.com"), []string{"universe_domain"}},
		"an unreadable field":     {changed(canary+" \n", "x"), []string{"unreadable"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := openWith(t, "", test.file)
			if !errors.Is(err, objectstore.ErrCredentials) {
				t.Fatalf("got %v", err)
			}
			for _, word := range append(test.words, credentialsFile, "gcs.gcpSecret") {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("no %q in: %v", word, err)
				}
			}
			if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), elsewhere.URL) {
				t.Errorf("a value is in: %v", err)
			}
		})
	}
	if asked > 0 {
		t.Errorf("another server got %d requests", asked)
	}
}

// TestTokensStayAtGoogle: an endpoint of the user's choice gets no token that counts at
// Google: neither that of the workload, nor one made with a key file.
func TestTokensStayAtGoogle(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(elsewhere.URL, "http://"))
	_, err := New(t.Context(), Config{Bucket: "b", Endpoint: elsewhere.URL, Transport: storetest.Transport(t, nil)})
	for what, err := range map[string]error{"workload": err, "key file": openWith(t, elsewhere.URL, keyFile(t))} {
		if !errors.Is(err, objectstore.ErrCredentials) || !strings.Contains(fmt.Sprint(err), "gcs.endpoint") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if asked > 0 {
		t.Errorf("it got %d requests", asked)
	}
}
