// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestSuccessIsRememberedForItsQuestionOnly: a pair was accepted, and the same pair is judged
// afresh by other CAs, for another purpose, and when it has ended.
func TestSuccessIsRememberedForItsQuestionOnly(t *testing.T) {
	t.Parallel()
	trusted, other := ca(t, now), ca(t, now)
	template := certificates.Template{Name: "server", Hosts: serverTemplate.Hosts, Server: true}
	pair, err := certificates.Read(resources.UseServer, secret(t, trusted, resources.UseServer, resources.FormatNamed, template, now))
	if err != nil {
		t.Fatal(err)
	}
	check := func(at time.Time, by *certificates.CA, purpose x509.ExtKeyUsage) error {
		return pair.Check(at, []*x509.Certificate{by.Certificate}, nil, purpose)
	}
	for range 2 {
		if err := check(now, trusted, x509.ExtKeyUsageServerAuth); err != nil {
			t.Fatal(err)
		}
		if err := check(now, other, x509.ExtKeyUsageServerAuth); !errors.Is(err, certificates.ErrUntrusted) {
			t.Errorf("by another CA: %v", err)
		}
		if err := check(now, trusted, x509.ExtKeyUsageClientAuth); !errors.Is(err, certificates.ErrUntrusted) {
			t.Errorf("for another purpose: %v", err)
		}
		if err := check(pair.Leaf.NotAfter.Add(time.Second), trusted, x509.ExtKeyUsageServerAuth); !errors.Is(err, certificates.ErrExpired) {
			t.Errorf("after its end: %v", err)
		}
		if !trusted.HasSigned(pair.Leaf) || other.HasSigned(pair.Leaf) {
			t.Error("the wrong CA has signed it")
		}
	}
}

// BenchmarkCheck measures what each look at a cluster with TLS does for each certificate.
func BenchmarkCheck(b *testing.B) {
	a, err := certificates.NewCA("c-ca", now)
	if err != nil {
		b.Fatal(err)
	}
	chain, key, err := a.Issue(serverTemplate, now)
	if err != nil {
		b.Fatal(err)
	}
	f := resources.Files(resources.UseServer, resources.FormatNamed)
	pair, err := certificates.Read(resources.UseServer, &corev1.Secret{Data: map[string][]byte{f.Cert: chain, f.Key: key, f.CA: certificates.PEM(a.Certificate)}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := pair.Check(now, pair.CAs, []string{host}, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth); err != nil {
			b.Fatal(err)
		}
	}
}
