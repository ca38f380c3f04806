// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterClient is one application that uses the cluster. The controller keeps a Secret
// for the application, by the Service Binding specification.
type ClusterClient struct {
	// name of the client, a DNS label of at most 63 characters that no other client of
	// this cluster has.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// commonName in the client certificate, for a cluster with TLS.auto: 1 to 64
	// letters, digits and the characters ". _ : @ / -", a letter or a digit first.
	// etcd's own authorization takes it for the name of a user. "root", the user that may
	// do everything, must be set explicitly. The names of the members' own certificates are
	// rejected. Default: the name of the client.
	CommonName string `json:"commonName,omitempty" protobuf:"bytes,2,opt,name=commonName"`
	// secretName is the name of the Secret, which no other client of this cluster has and
	// which is not that of a Secret of the cluster itself. A Secret that exists and was not
	// made for this cluster is never changed. Default: <cluster>-<name>-binding.
	SecretName string `json:"secretName,omitempty" protobuf:"bytes,3,opt,name=secretName"`
}

// ClientStatus tells about the Secret of one client. None of it is secret.
type ClientStatus struct {
	// secretName is the name of the Secret.
	SecretName string `json:"secretName" protobuf:"bytes,1,opt,name=secretName"`
	// name of the client in spec.clients. It is empty for a Secret whose client was removed and
	// that is about to be deleted.
	Name string `json:"name,omitempty" protobuf:"bytes,2,opt,name=name"`
	// ready: True if the Secret is as declared, False if not, Unknown if it could not be read.
	Ready corev1.ConditionStatus `json:"ready,omitempty" protobuf:"bytes,3,opt,name=ready,casttype=k8s.io/api/core/v1.ConditionStatus"`
	// reason says in one CamelCase word why ready is not True.
	Reason string `json:"reason,omitempty" protobuf:"bytes,4,opt,name=reason"`
	// message says the same for a reader.
	Message string `json:"message,omitempty" protobuf:"bytes,5,opt,name=message"`
	// notAfter is until when the certificate in the Secret is valid.
	NotAfter *metav1.Time `json:"notAfter,omitempty" protobuf:"bytes,6,opt,name=notAfter"`
	// renewalTime is when the controller renews the certificate; absent for one that ends with its CA,
	// which only the next CA renews.
	RenewalTime *metav1.Time `json:"renewalTime,omitempty" protobuf:"bytes,7,opt,name=renewalTime"`
}
