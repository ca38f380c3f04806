// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Entries of the secret of a cluster's own authority, besides those of FormatKubernetes.
// Entry ca.crt there holds the authorities that are trusted, the present one first.
const (
	// CrossEntry is the present authority as the one before vouched for it.
	CrossEntry = "cross.crt"
)

// Annotations of certificates.
const (
	// AnnotationRotateAuthority on an EtcdCluster asks for a new authority when its value
	// changes. On the secret of the authority it is the last request that was met.
	AnnotationRotateAuthority = "etcd.database.coreos.com/rotate-ca"
	// AnnotationDropAuthority on an EtcdCluster with the value of the last request says
	// that no client needs the old authority any more.
	AnnotationDropAuthority = "etcd.database.coreos.com/drop-old-ca"
	// AnnotationTrust on a pod names the authorities that etcd in it trusts: it reads
	// them only when it starts.
	AnnotationTrust = "etcd.database.coreos.com/trust"
	// AnnotationAuthorities on a pod lists the authorities by which etcd in it knows other
	// members.
	AnnotationAuthorities = "etcd.database.coreos.com/authorities"
	// AnnotationCertificates on a pod names the certificates that its volumes shall
	// have. Changing it makes the kubelet look.
	AnnotationCertificates = "etcd.database.coreos.com/certificates"
)

// PeerCommonName is the name in the certificates of members that are issued for a
// cluster. Members take nobody else for a peer: certificates of clients come from the
// same authority.
const PeerCommonName = "etcd-peer"

// AuthoritySecret and ClientSecret return the names of the secrets with the cluster's
// own authority and with a certificate for the clients of the user.
func AuthoritySecret(c *v1beta2.EtcdCluster) string { return c.Name + "-ca-tls" }

// ClientSecret is for clients of the user.
func ClientSecret(c *v1beta2.EtcdCluster) string { return c.Name + "-client-tls" }

// IssuesCertificates is true if the controller itself issues what c needs.
func IssuesCertificates(c *v1beta2.EtcdCluster) bool {
	return c.Spec.TLS != nil && c.Spec.TLS.Auto != nil
}

// CertificateSecret returns a secret of the cluster that holds a certificate.
func CertificateSecret(c *v1beta2.EtcdCluster, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: objectMeta(c, name, nil, nil),
		Type:       corev1.SecretTypeTLS,
		Data:       data,
	}
}

// defaultDomain is what clusters use unless told otherwise.
const defaultDomain = "cluster.local"

// PeerHosts returns what the certificate that members show to each other is good for.
func PeerHosts(c *v1beta2.EtcdCluster) []string {
	return append(serviceNames(c, "*."+PeerServiceName(c)), "localhost", "127.0.0.1", "::1")
}

// ServerHosts returns what the certificate that members show to clients is good for.
func ServerHosts(c *v1beta2.EtcdCluster) []string {
	hosts := slices.Concat(
		serviceNames(c, "*."+PeerServiceName(c)),
		[]string{ClientServiceName(c), PeerServiceName(c)},
		serviceNames(c, ClientServiceName(c)),
		serviceNames(c, PeerServiceName(c)),
		[]string{"localhost", "127.0.0.1", "::1"})
	return hosts
}

// serviceNames returns the names under which a name of a service resolves.
func serviceNames(c *v1beta2.EtcdCluster, name string) []string {
	domain := strings.TrimPrefix(podPolicy(c).ClusterDomain, ".")
	if domain == "" {
		domain = defaultDomain
	}
	base := name + "." + c.Namespace
	return []string{base, base + ".svc", base + ".svc." + domain}
}
