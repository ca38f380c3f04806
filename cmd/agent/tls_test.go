// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// notTrusted is what Go says of a certificate that no trusted CA has signed.
var notTrusted = x509.UnknownAuthorityError{}.Error()

// TestStoresWithTheirOwnCA: the certificate of a store of any kind is trusted if it
// is signed by the CA that the user names, or by one that the pod has. Otherwise the
// message says which field names it, and nothing is stored.
func TestStoresWithTheirOwnCA(t *testing.T) {
	member := etcdtest.New(t).Member("m0")
	other := httptest.NewTLSServer(nil)
	t.Cleanup(other.Close)
	another := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw}))
	good := string(storetest.CA(t))
	inPod := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(inPod, []byte(another+good), 0o600); err != nil {
		t.Fatal(err)
	}
	eachRealStore(t, func(t *testing.T, s *realStore) {
		if s.endpoint == "" {
			t.Skip("a volume is not reached over a network")
		}
		field := map[v1beta2.BackupStorageType]string{"S3": "s3.caSecret", "GCS": "gcs.caSecret", "ABS": "abs.caSecret", "OSS": "oss.caSecret"}[s.kind]
		for name, test := range map[string]struct {
			ca       map[string]string
			env      []string
			insecure bool
			class    agent.ErrorClass
			words    []string
		}{
			"its CA":                 {ca: map[string]string{caFile: good}},
			"several CAs":            {ca: map[string]string{caFile: another + good}},
			"CA in the pod":          {env: []string{"SSL_CERT_FILE=" + inPod}},
			"no question":            {insecure: true},
			"public ones only":       {class: agent.ClassStore, words: []string{"certificate of the store is not trusted", notTrusted, field, caFile}},
			"another than the pod's": {ca: map[string]string{caFile: another}, env: []string{"SSL_CERT_FILE=" + inPod}, class: agent.ClassStore, words: []string{notTrusted, field}},
			"another":                {ca: map[string]string{caFile: another}, class: agent.ClassStore, words: []string{"certificate of the store is not trusted", field}},
			"no certificate":         {ca: map[string]string{caFile: "none"}, class: agent.ClassCredentials, words: []string{field, caFile}},
			"no entry":               {ca: map[string]string{"tls.crt": good}, class: agent.ClassCredentials, words: []string{field, caFile}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := saveTo(s.at(t, s.endpoint, s.right), name, member.ClientURL)
				r.Store.Key = strings.ReplaceAll(name, " ", "-")
				r.Store.CADir, r.Store.InsecureSkipTLSVerify = "", test.insecure
				if test.ca != nil {
					r.Store.CADir = storetest.Secret(t, test.ca)
				}
				result, said, failed := runAgent(t, agent.CommandSave, encode(t, agent.CommandSave, r), append(noSystemPool(t), test.env...)...)
				if failed != (test.class != "") || (failed && result.Error.Class != test.class) {
					t.Fatalf("got %+v, want %q: %s", result.Error, test.class, said)
				}
				for _, word := range test.words {
					if !strings.Contains(result.Error.Message, word) {
						t.Errorf("the message has no %q: %s", word, result.Error.Message)
					}
				}
				if all := below(t, s, r.Store.Key); (len(all) == 0) != failed {
					t.Errorf("stored are %v", all)
				}
				mustHideSecrets(t, said)
			})
		}
	})
}

// TestUntrustedStoresAreAskedOnce: a certificate that is not trusted is no more so a moment
// later.
func TestUntrustedStoresAreAskedOnce(t *testing.T) {
	secret := map[string]string{
		"access-token": storetest.Token, "storage-account": storetest.Account, "storage-key": storetest.AccountKey,
		"accessKeyID": storetest.AccessKey, "accessKeySecret": storetest.SecretKey, "credentials": awsEntries(storetest.AccessKey)["credentials"],
	}
	for _, kind := range []v1beta2.BackupStorageType{"S3", "GCS", "ABS", "OSS"} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int64
			server := httptest.NewUnstartedServer(nil)
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.StartTLS()
			t.Cleanup(server.Close)
			s := &realStore{kind: kind}
			store, err := openStore(t.Context(), s.at(t, server.URL, secret), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			_, err = store.Stat(t.Context(), "k")
			var certificate *tls.CertificateVerificationError
			if !errors.As(err, &certificate) || connections.Load() != 1 {
				t.Errorf("asked %d times: %v", connections.Load(), err)
			}
		})
	}
}

// noSystemPool makes a process find no certificates on this machine, as in the image.
func noSystemPool(t *testing.T) []string {
	t.Helper()
	return []string{"AWS_CA_BUNDLE=", "SSL_CERT_FILE=" + filepath.Join(t.TempDir(), "none"), "SSL_CERT_DIR=" + t.TempDir()}
}

// publicRoots are CAs that the clouds of all kinds of stores have used for years.
var publicRoots = []string{
	"Amazon Root CA 1", "Starfield Services Root Certificate Authority - G2", "GTS Root R1", "GTS Root R4",
	"DigiCert Global Root G2", "Microsoft RSA Root Certificate Authority 2017", "GlobalSign",
}

// showRoots makes this test binary say which of the public CAs it trusts.
const showRoots = "SHOW_TRUSTED_ROOTS"

// trustedRoots returns the names of the CAs that this process trusts without being
// given any.
func trustedRoots() ([]string, error) {
	var names []string
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, err
		}
		if _, err := certificate.Verify(x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
			names = append(names, certificate.Subject.CommonName)
		}
	}
	return names, nil
}

// TestPublicCAsWithoutSystemPool: where a pod has no certificates, as in the image,
// the agent trusts the CAs of the clouds; where it has some, those and no others.
func TestPublicCAsWithoutSystemPool(t *testing.T) {
	got := childRoots(t, noSystemPool(t)...)
	for _, name := range publicRoots {
		if !slices.Contains(got, name) {
			t.Errorf("%s is not trusted", name)
		}
	}
	if len(got) < 100 {
		t.Errorf("only %d CAs are trusted: %v", len(got), got)
	}
	own := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(own, storetest.CA(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := childRoots(t, "SSL_CERT_FILE="+own, "SSL_CERT_DIR="+t.TempDir()); len(got) != 0 {
		t.Errorf("a pod with certificates of its own trusts also %v", got)
	}
}
