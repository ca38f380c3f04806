// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Entries of the secret of a cluster's own CA, in addition to those of FormatKubernetes.
// Entry ca.crt there holds the CAs that are trusted, the present one first.
const (
	// CrossEntry is the present CA, cross-signed by the previous CA, and then the previous CA.
	CrossEntry = "cross.crt"
)

// Annotations of certificates.
const (
	// AnnotationRotateCA on an EtcdCluster asks for a new CA when its value
	// changes. On the secret of the CA it is the last request that was met.
	AnnotationRotateCA = "etcd.database.coreos.com/rotate-ca"
	// AnnotationDropOldCA on an EtcdCluster says that no client needs the CA before the present one any more. Its
	// value is that of the request which brought the present CA, or the serial number of the present CA. On the
	// secret of the CA it is the last such request that is carried out or came too early.
	AnnotationDropOldCA = "etcd.database.coreos.com/drop-old-ca"
	// AnnotationTrust on a pod names the CAs that etcd in it trusts: it reads
	// them only when it starts.
	AnnotationTrust = "etcd.database.coreos.com/trust"
	// AnnotationCAs on a pod lists the CAs by which etcd in it knows other
	// members.
	AnnotationCAs = "etcd.database.coreos.com/authorities"
	// AnnotationCertificates on a pod names the certificates for its volumes. A
	// change of it makes the kubelet update the volumes.
	AnnotationCertificates = "etcd.database.coreos.com/certificates"
)

// CASecret and ClientSecret return the names of the secrets with the cluster's
// own CA and with a certificate for the clients of the user.
func CASecret(c *v1beta2.EtcdCluster) string { return c.Name + v1beta2.CASecretSuffix }

// ClientSecret is for clients of the user.
func ClientSecret(c *v1beta2.EtcdCluster) string { return c.Name + v1beta2.ClientSecretSuffix }

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
