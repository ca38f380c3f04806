// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TLSPolicy says where the cluster's certificates come from. At most one of its
// fields may be set.
type TLSPolicy struct {
	// static uses secrets that the user provides.
	Static *StaticTLS `json:"static,omitempty" protobuf:"bytes,1,opt,name=static"`
	// auto lets the controller keep a CA for the cluster and issue and renew every
	// certificate.
	Auto *AutoTLS `json:"auto,omitempty" protobuf:"bytes,2,opt,name=auto"`
	// certManager lets cert-manager issue and renew every certificate.
	CertManager *CertManagerTLS `json:"certManager,omitempty" protobuf:"bytes,3,opt,name=certManager"`
}

// StaticTLS names secrets of the cluster's namespace that hold the certificates.
type StaticTLS struct {
	// member names the secrets that the members use.
	Member *MemberSecret `json:"member,omitempty" protobuf:"bytes,1,opt,name=member"`
	// operatorSecret holds the client certificate with which the controller talks to
	// etcd: etcd-client.crt, etcd-client.key, etcd-client-ca.crt, or tls.crt, tls.key, ca.crt.
	OperatorSecret string `json:"operatorSecret,omitempty" protobuf:"bytes,2,opt,name=operatorSecret"`
}

// MemberSecret names the secrets that the members use.
type MemberSecret struct {
	// peerSecret holds the certificate of the traffic between members: peer.crt,
	// peer.key, peer-ca.crt, or tls.crt, tls.key, ca.crt.
	PeerSecret string `json:"peerSecret,omitempty" protobuf:"bytes,1,opt,name=peerSecret"`
	// serverSecret holds the certificate that members show to clients: server.crt,
	// server.key, server-ca.crt, or tls.crt, tls.key, ca.crt.
	ServerSecret string `json:"serverSecret,omitempty" protobuf:"bytes,2,opt,name=serverSecret"`
}

// AutoTLS asks for certificates that the controller issues itself.
type AutoTLS struct{}

// CertManagerTLS asks for certificates that cert-manager issues.
type CertManagerTLS struct {
	// issuerRef names the issuer.
	IssuerRef IssuerReference `json:"issuerRef" protobuf:"bytes,1,opt,name=issuerRef"`
}

// IssuerReference names a cert-manager issuer.
type IssuerReference struct {
	// name of the issuer.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// kind of the issuer: Issuer (default) or ClusterIssuer.
	Kind string `json:"kind,omitempty" protobuf:"bytes,2,opt,name=kind"`
	// group of the issuer. Default: cert-manager.io.
	Group string `json:"group,omitempty" protobuf:"bytes,3,opt,name=group"`
}

// CertificateUse is what a certificate of a cluster is for.
type CertificateUse string

// Values of CertificateUse.
const (
	// CertificateUseCA is the CA that signs the others; it exists only
	// with TLS.auto.
	CertificateUseCA CertificateUse = "CA"
	// CertificateUsePeer is what members show to each other.
	CertificateUsePeer CertificateUse = "Peer"
	// CertificateUseServer is what members show to clients.
	CertificateUseServer CertificateUse = "Server"
	// CertificateUseOperator is what the controller shows to members.
	CertificateUseOperator CertificateUse = "Operator"
	// CertificateUseClient is for the clients of the user; it exists only where
	// certificates are issued.
	CertificateUseClient CertificateUse = "Client"
)

// CertificateStatus tells about one certificate. None of it is secret.
type CertificateStatus struct {
	// use: CA, Peer, Server, Operator or Client.
	Use CertificateUse `json:"use" protobuf:"bytes,1,opt,name=use,casttype=CertificateUse"`
	// secretName is the secret that holds it.
	SecretName string `json:"secretName,omitempty" protobuf:"bytes,2,opt,name=secretName"`
	// issuer is the name of the CA that signed the certificate.
	Issuer string `json:"issuer,omitempty" protobuf:"bytes,3,opt,name=issuer"`
	// serialNumber in hexadecimal.
	SerialNumber string `json:"serialNumber,omitempty" protobuf:"bytes,4,opt,name=serialNumber"`
	// notBefore is from when it is valid.
	NotBefore *metav1.Time `json:"notBefore,omitempty" protobuf:"bytes,5,opt,name=notBefore"`
	// notAfter is until when it is valid.
	NotAfter *metav1.Time `json:"notAfter,omitempty" protobuf:"bytes,6,opt,name=notAfter"`
	// renewalTime is when the controller renews it; absent if another program does, and for a
	// certificate that ends with its CA, which only the next CA renews.
	RenewalTime *metav1.Time `json:"renewalTime,omitempty" protobuf:"bytes,7,opt,name=renewalTime"`
	// usable: True if it can be used now, False if not, Unknown if the secret could
	// not be read.
	Usable corev1.ConditionStatus `json:"usable,omitempty" protobuf:"bytes,8,opt,name=usable,casttype=k8s.io/api/core/v1.ConditionStatus"`
	// message says why it cannot be used.
	Message string `json:"message,omitempty" protobuf:"bytes,9,opt,name=message"`
}
