// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// The API of cert-manager is used as it is served. Its module is not imported: that would
// tie this module to a release of cert-manager.

// CertManagerVersion and CertManagerResource name the API of cert-manager.
var (
	CertManagerVersion  = schema.GroupVersion{Group: "cert-manager.io", Version: "v1"}
	CertManagerResource = CertManagerVersion.WithResource("certificates")
)

// RequestsCertificates is true if cert-manager is to issue what c needs.
func RequestsCertificates(c *v1beta2.EtcdCluster) bool {
	return c.Spec.TLS != nil && c.Spec.TLS.CertManager != nil
}

// annotationCertificateName on a Secret is the Certificate that cert-manager has written the Secret for.
const annotationCertificateName = "cert-manager.io/certificate-name"

// IsWrittenByCertManager is true for a Secret that cert-manager has written for the Certificate of the same name. It replaces
// the content of any other Secret that a Certificate names.
func IsWrittenByCertManager(secret *corev1.Secret) bool {
	return secret.Annotations[annotationCertificateName] == secret.Name
}

// CertificateRequest is what cert-manager is to issue for one use.
type CertificateRequest struct {
	// Secret receives the certificate; the Certificate has the same name.
	Secret string
	// CommonName and Hosts are the names that the certificate is valid for.
	CommonName string
	Hosts      []string
	// Server and Client are how it is shown.
	Server, Client bool
}

// Certificate returns the Certificate that asks cert-manager for it.
func (r CertificateRequest) Certificate(c *v1beta2.EtcdCluster) *unstructured.Unstructured {
	usages := []any{"digital signature", "key encipherment"}
	if r.Server {
		usages = append(usages, "server auth")
	}
	if r.Client {
		usages = append(usages, "client auth")
	}
	spec := map[string]any{
		"secretName": r.Secret,
		"commonName": r.CommonName,
		"usages":     usages,
		"privateKey": map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
		"issuerRef":  issuerRef(c),
	}
	var names, addresses []any
	for _, host := range r.Hosts {
		if _, err := netip.ParseAddr(host); err == nil {
			addresses = append(addresses, host)
		} else {
			names = append(names, host)
		}
	}
	if len(names) > 0 {
		spec["dnsNames"] = names
	}
	if len(addresses) > 0 {
		spec["ipAddresses"] = addresses
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(CertManagerVersion.WithKind("Certificate"))
	u.SetName(r.Secret)
	u.SetNamespace(c.Namespace)
	u.SetLabels(Labels(c.Name))
	u.SetOwnerReferences([]metav1.OwnerReference{Owner(c)})
	return u
}

func issuerRef(c *v1beta2.EtcdCluster) map[string]any {
	ref := c.Spec.TLS.CertManager.IssuerRef
	if ref.Kind == "" {
		ref.Kind = "Issuer"
	}
	if ref.Group == "" {
		ref.Group = CertManagerVersion.Group
	}
	return map[string]any{"name": ref.Name, "kind": ref.Kind, "group": ref.Group}
}

// CertificateDrift returns live with every field that want sets, and whether that is a
// change. Other fields, such as a duration, are the user's.
func CertificateDrift(want, live *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	repaired := live.DeepCopy()
	labels := repaired.GetLabels()
	repaired.SetLabels(merged(labels, want.GetLabels()))
	spec, _ := repaired.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	desired, _ := want.Object["spec"].(map[string]any)
	overlay(spec, runtime.DeepCopyJSON(desired))
	repaired.Object["spec"] = spec
	return repaired, !equality.Semantic.DeepEqual(repaired.Object, live.Object)
}

// overlay puts the fields of want over those of live; lists as a whole.
func overlay(there, want map[string]any) {
	for key, value := range want {
		inner, nested := value.(map[string]any)
		below, exists := there[key].(map[string]any)
		if nested && exists {
			overlay(below, inner)
			continue
		}
		there[key] = value
	}
}

// CertificateSays returns what cert-manager says of a Certificate that is not ready; empty for one that is ready.
func CertificateSays(live *unstructured.Unstructured) string {
	list, _, err := unstructured.NestedSlice(live.Object, "status", "conditions")
	if err != nil {
		return "its status cannot be read"
	}
	for _, entry := range list {
		condition, ok := entry.(map[string]any)
		if !ok || condition["type"] != "Ready" {
			continue
		}
		if condition["status"] == string(metav1.ConditionTrue) {
			return ""
		}
		reason, _ := condition["reason"].(string)
		message, _ := condition["message"].(string)
		if message == "" {
			return reason
		}
		return reason + ": " + message
	}
	return "nothing yet"
}
