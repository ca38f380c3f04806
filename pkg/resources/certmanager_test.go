// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func requestOfPeers() (*v1beta2.EtcdCluster, *unstructured.Unstructured) {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"}}
	c.Spec.TLS = &v1beta2.TLSPolicy{CertManager: &v1beta2.CertManagerTLS{IssuerRef: v1beta2.IssuerReference{Name: "ca"}}}
	return c, CertificateRequest{
		Secret: "c-peer-tls", CommonName: v1beta2.PeerCommonName, Hosts: []string{"*.c.n.svc", "127.0.0.1", "::1"}, Server: true, Client: true,
	}.Certificate(c)
}

func TestCertificateRequest(t *testing.T) {
	_, got := requestOfPeers()
	want := map[string]any{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: c-peer-tls
  namespace: "n"
  labels: {app: etcd, etcd_cluster: c}
  ownerReferences:
  - {apiVersion: etcd.database.coreos.com/v1beta2, kind: EtcdCluster, name: c, uid: uid, controller: true, blockOwnerDeletion: false}
spec:
  secretName: c-peer-tls
  commonName: etcd-peer
  dnsNames: ["*.c.n.svc"]
  ipAddresses: [127.0.0.1, "::1"]
  usages: [digital signature, key encipherment, server auth, client auth]
  privateKey: {algorithm: ECDSA, rotationPolicy: Always}
  issuerRef: {name: ca, kind: Issuer, group: cert-manager.io}
`), &want); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(want, int64(256), "spec", "privateKey", "size"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("- wanted, + is:\n%s", diff)
	}
}

func TestCertificateDrift(t *testing.T) {
	_, want := requestOfPeers()
	set := func(value any, path ...string) func(map[string]any) {
		return func(o map[string]any) {
			if err := unstructured.SetNestedField(o, value, path...); err != nil {
				t.Fatal(err)
			}
		}
	}
	drop := func(path ...string) func(map[string]any) {
		return func(o map[string]any) { unstructured.RemoveNestedField(o, path...) }
	}
	for name, test := range map[string]struct {
		edit    func(map[string]any)
		drifted bool
	}{
		"as it was made":           {func(map[string]any) {}, false},
		"a duration of the user's": {set("1h", "spec", "duration"), false},
		"a label of the user's":    {set("x", "metadata", "labels", "team"), false},
		"a default of theirs":      {set("PKCS1", "spec", "privateKey", "encoding"), false},
		"a status":                 {set("x", "status", "revision"), false},
		"another secret":           {set("other", "spec", "secretName"), true},
		"another issuer":           {set("other", "spec", "issuerRef", "name"), true},
		"fewer names":              {set([]any{"localhost"}, "spec", "dnsNames"), true},
		"no names":                 {drop("spec", "dnsNames"), true},
		"another algorithm":        {set("RSA", "spec", "privateKey", "algorithm"), true},
		"no label of ours":         {drop("metadata", "labels", "app"), true},
		"no spec":                  {drop("spec"), true},
	} {
		live := want.DeepCopy()
		test.edit(live.Object)
		before := live.DeepCopy()
		repaired, drifted := CertificateDrift(want, live)
		if drifted != test.drifted {
			t.Errorf("%s: drifted is %t", name, drifted)
		}
		if !cmp.Equal(before.Object, live.Object) {
			t.Errorf("%s: what was read was changed", name)
		}
		if _, again := CertificateDrift(want, repaired); again {
			t.Errorf("%s: it drifts for ever", name)
		}
	}
}

func TestCertificateSays(t *testing.T) {
	_, live := requestOfPeers()
	if got := CertificateSays(live); got != "nothing yet" {
		t.Errorf("without a status it says %q", got)
	}
	conditions := []any{
		map[string]any{"type": "Issuing", "reason": "Other"},
		map[string]any{"type": "Ready", "status": "False", "reason": "NoIssuer", "message": "there is none"},
	}
	if err := unstructured.SetNestedSlice(live.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	if got := CertificateSays(live); got != "NoIssuer: there is none" {
		t.Errorf("it says %q", got)
	}
	conditions[1] = map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "Certificate is up to date"}
	if err := unstructured.SetNestedSlice(live.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	if got := CertificateSays(live); got != "" {
		t.Errorf("of a Certificate that is ready it says %q", got)
	}
}
