// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"bytes"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// BindingSecretType is the type of the Secret of a client, by the Service Binding
	// specification. No Secret of another type is written or deleted as one.
	BindingSecretType corev1.SecretType = "servicebinding.io/etcd"
	// LabelClient on the Secret of a client is the name of the client.
	LabelClient = "etcd.database.coreos.com/client"

	bindingType     = "etcd"
	bindingProvider = "etcd-operator"
)

// Entries of the Secret of a client, in addition to those of FormatKubernetes. The first five
// are names of the Service Binding specification.
const (
	BindingEntryType     = "type"
	BindingEntryProvider = "provider"
	BindingEntryHost     = "host"
	BindingEntryPort     = "port"
	BindingEntryURI      = "uri"
	// BindingEntryEndpoints is a list of URLs with commas between them, as etcdctl takes it.
	BindingEntryEndpoints = "endpoints"
)

// MakesBindings is true if the controller can make the Secrets of the clients of c: clients
// need no certificate, or the controller issues it.
func MakesBindings(c *v1beta2.EtcdCluster) bool {
	return !HasClientTLS(c) || IssuesCertificates(c)
}

// ClientHost returns the DNS name of the client Service.
func ClientHost(c *v1beta2.EtcdCluster) string {
	host := ClientServiceName(c) + "." + c.Namespace + ".svc"
	if domain := strings.TrimPrefix(podPolicy(c).ClusterDomain, "."); domain != "" {
		host += "." + domain
	}
	return host
}

// BindingEntries returns the entries of the Secret of a client that hold no certificate. They
// name the client Service only, which leads to whatever members serve: the names of members
// change.
func BindingEntries(c *v1beta2.EtcdCluster) map[string][]byte {
	uri := memberURL(HasClientTLS(c), ClientHost(c), ClientPort)
	entries := map[string][]byte{}
	for entry, value := range map[string]string{
		BindingEntryType: bindingType, BindingEntryProvider: bindingProvider,
		BindingEntryHost: ClientHost(c), BindingEntryPort: strconv.Itoa(ClientPort),
		BindingEntryURI: uri, BindingEntryEndpoints: uri,
	} {
		entries[entry] = []byte(value)
	}
	return entries
}

// IsBinding is true for a Secret that was made for a client of c.
func IsBinding(c *v1beta2.EtcdCluster, secret *corev1.Secret) bool {
	return secret.Type == BindingSecretType && Owns(c, secret)
}

// Binding returns live with the label and the entries of a client, and with these entries of a
// certificate; a new Secret if live is nil. Entries that others have added stay.
func Binding(c *v1beta2.EtcdCluster, client *v1beta2.ClusterClient, live *corev1.Secret, certificate map[string][]byte) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: objectMeta(c, client.SecretOf(c.Name), nil, nil), Type: BindingSecretType}
	if live != nil {
		secret = live.DeepCopy()
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, BindingEntries(c))
	maps.Copy(secret.Data, certificate)
	metav1.SetMetaDataLabel(&secret.ObjectMeta, LabelClient, client.Name)
	return secret
}

// MatchesBinding is true if Binding would change nothing of a Secret but its certificate.
func MatchesBinding(c *v1beta2.EtcdCluster, client *v1beta2.ClusterClient, live *corev1.Secret) bool {
	for entry, value := range BindingEntries(c) {
		if got, has := live.Data[entry]; !has || !bytes.Equal(got, value) {
			return false
		}
	}
	return live.Labels[LabelClient] == client.Name
}
