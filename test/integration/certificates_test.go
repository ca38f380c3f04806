// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const secretName = "etcd-operator-apiserver-tls"

// TestRotation puts a CA that expires soon into the Secret. The server adds a new CA to the bundle
// and keeps the leaf of the old one. The kube-apiserver accepts the leaf at each step. The test
// does not run in parallel with other tests.
func TestRotation(t *testing.T) {
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	check := func() {
		t.Helper()
		if _, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
			t.Errorf("through the aggregator: %v", err)
		}
	}

	ending := endingCertificates(t)
	secret := readSecret(t)
	secret.Data = ending
	if _, err := env.client.CoreV1().Secrets(secret.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	restart(t, syscall.SIGKILL)
	check()
	renewed := readSecret(t).Data
	if !bytes.Equal(renewed[corev1.TLSCertKey], ending[corev1.TLSCertKey]) {
		t.Error("the leaf was replaced before all clients can know the new CA")
	}
	if trust := readTrust(t); !bytes.HasSuffix(trust, ending["ca.crt"]) || countCertificates(trust) != 2 {
		t.Errorf("the bundle has %d CAs, want the new and the old CA", countCertificates(trust))
	}

	// The Secret was deleted: the first server creates it again, and the bundle follows.
	if err := env.client.CoreV1().Secrets(secret.Namespace).Delete(t.Context(), secretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	restart(t, syscall.SIGKILL)
	check()
	if trust := readTrust(t); countCertificates(trust) != 1 || bytes.Contains(renewed["ca.crt"], trust) {
		t.Error("the bundle is not that of the new CA")
	}
	if !bytes.Equal(readSecret(t).Data["ca.crt"], readTrust(t)) {
		t.Error("the bundle is not what the Secret holds")
	}
}

func readSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := env.client.CoreV1().Secrets(namespace).Get(t.Context(), secretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func readTrust(t *testing.T) []byte {
	t.Helper()
	registered, err := env.apiService.ApiregistrationV1().APIServices().Get(t.Context(), apiServiceName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if registered.Spec.InsecureSkipTLSVerify {
		t.Error("the kube-apiserver does not verify the server")
	}
	return registered.Spec.CABundle
}

func countCertificates(pem []byte) int { return bytes.Count(pem, []byte("BEGIN CERTIFICATE")) }

// endingCertificates returns the data of a Secret with a CA that expires in a year.
func endingCertificates(t *testing.T) map[string][]byte {
	t.Helper()
	sign := func(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if parent == nil {
			parent, parentKey = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		certPEM, err := cert.EncodeCertificates(certificate)
		if err != nil {
			t.Fatal(err)
		}
		keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		return certificate, key, certPEM, keyPEM
	}
	year := 365 * 24 * time.Hour
	ca, caKey, caPEM, caKeyPEM := sign(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ending"},
		NotBefore: time.Now().Add(-9 * year), NotAfter: time.Now().Add(year),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	host := serviceName + "." + namespace
	_, _, leafPEM, leafKeyPEM := sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		DNSNames:  []string{host + ".svc", host + ".svc.cluster.local", host, "localhost"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(89 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, caKey)
	return map[string][]byte{
		"ca.crt": caPEM, "ca.key": caKeyPEM, corev1.TLSCertKey: leafPEM, corev1.TLSPrivateKeyKey: leafKeyPEM,
	}
}
