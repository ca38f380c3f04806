// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

func newStore(t *testing.T) Store {
	t.Helper()
	store := Store{Dir: t.TempDir()}
	if err := store.EnsureCAs(); err != nil {
		t.Fatal(err)
	}
	return store
}

func verify(t *testing.T, store Store, name, issuer, host string, usage x509.ExtKeyUsage) (*x509.Certificate, error) {
	t.Helper()
	cert, _, err := store.load(name)
	if err != nil {
		t.Fatal(err)
	}
	ca, _, err := store.load(issuer)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}})
	return cert, err
}

func TestControlPlaneCertificates(t *testing.T) {
	store := newStore(t)
	for _, want := range ControlPlane() {
		if err := store.Ensure(want, topology.Dual.APIServer()); err != nil {
			t.Fatal(err)
		}
		cert, err := verify(t, store, want.Name, want.Issuer, "", x509.ExtKeyUsageClientAuth)
		if err != nil {
			t.Errorf("%s: %v", want.Name, err)
		}
		if cert.Subject.CommonName != want.User {
			t.Errorf("%s: user %q, want %q", want.Name, cert.Subject.CommonName, want.User)
		}
		for _, host := range want.Hosts {
			if _, err := verify(t, store, want.Name, want.Issuer, host, x509.ExtKeyUsageServerAuth); err != nil {
				t.Errorf("%s does not serve %s: %v", want.Name, host, err)
			}
		}
	}
	for _, host := range []string{topology.V4.ControlPlaneIP, topology.V4.APIServiceIP, topology.V6.ControlPlaneIP, topology.V6.APIServiceIP, "kubernetes.default.svc"} {
		if _, err := verify(t, store, APIServer, CA, host, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("the API server's certificate: %v", err)
		}
	}
	if _, err := verify(t, store, FrontProxyClient, CA, "", x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("the front proxy's certificate comes from the clients' CA: every client could impersonate through it")
	}
}

func TestKubeletCertificate(t *testing.T) {
	store := newStore(t)
	node := topology.Node{Index: 3}
	if err := store.Ensure(Kubelet(node), topology.Dual.APIServer()); err != nil {
		t.Fatal(err)
	}
	cert, err := verify(t, store, KubeletName(node), CA, "172.30.0.13", x509.ExtKeyUsageServerAuth)
	if err != nil {
		t.Error(err)
	}
	if cert.Subject.CommonName != "system:node:n3" || !slices.Equal(cert.Subject.Organization, []string{"system:nodes"}) {
		t.Errorf("subject %v is not a node's", cert.Subject)
	}
}

func TestEnsureKeepsWhatExists(t *testing.T) {
	store := newStore(t)
	read := func() string {
		var all strings.Builder
		for _, file := range []string{CA + ".crt", Admin + ".crt", Admin + ".kubeconfig", ServiceAccountKeys + ".pub"} {
			raw, err := os.ReadFile(store.File(file))
			if err != nil {
				t.Fatal(err)
			}
			all.Write(raw)
		}
		return all.String()
	}
	ensure := func() {
		if err := store.EnsureCAs(); err != nil {
			t.Fatal(err)
		}
		for _, want := range ControlPlane() {
			if err := store.Ensure(want, topology.Dual.APIServer()); err != nil {
				t.Fatal(err)
			}
		}
	}
	ensure()
	first := read()
	ensure()
	if read() != first {
		t.Error("a second run replaced certificates")
	}
}
