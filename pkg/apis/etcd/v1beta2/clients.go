// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// Common names in the certificates that are issued for a cluster.
const (
	// PeerCommonName is in the certificate that members show to each other. Members take no
	// other for a peer: certificates of clients come from the same CA.
	PeerCommonName = "etcd-peer"
	// ServerCommonName is in the certificate that members show to clients.
	ServerCommonName = "etcd-server"
	// OperatorCommonName is in the certificate of the controller. It is the user that may do
	// everything, where etcd's own authorization is on.
	OperatorCommonName = "root"
)

// Suffixes of the names of the Secrets with the certificates that are issued for a cluster,
// after the name of the cluster.
const (
	CASecretSuffix       = "-ca-tls"
	PeerSecretSuffix     = "-peer-tls"
	ServerSecretSuffix   = "-server-tls"
	OperatorSecretSuffix = "-operator-tls"
	ClientSecretSuffix   = "-client-tls"
)

// SecretOf returns the name of the Secret of the client in the cluster of this name.
func (c *ClusterClient) SecretOf(cluster string) string {
	if c.SecretName != "" {
		return c.SecretName
	}
	return cluster + "-" + c.Name + "-binding"
}

// CertificateName returns the common name in the certificate of the client.
func (c *ClusterClient) CertificateName() string {
	if c.CommonName != "" {
		return c.CommonName
	}
	return c.Name
}
