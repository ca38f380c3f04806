// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// mountDir is where the example mounts the certificates of a client.
const mountDir = "/etc/etcd-client"

// ErrNoClient says that spec.clients has no client of that name.
var ErrNoClient = errors.New("no such client")

// Connection is what an application needs to reach a cluster. It holds names of Secrets and
// nothing that is secret.
type Connection struct {
	metav1.TypeMeta `json:",inline"`

	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Endpoint is the URL of the client Service.
	Endpoint string `json:"endpoint"`
	// Service is the name of the client Service.
	Service string `json:"service"`
	// MemberEndpoints are the URLs of the members.
	MemberEndpoints []string `json:"memberEndpoints,omitempty"`
	// TLS is true if clients need certificates.
	TLS bool `json:"tls"`
	// Secret holds the certificate and the key of a client, and the CA. It is empty if the
	// user issues the certificates.
	Secret string `json:"secret,omitempty"`
	// Client is the client in spec.clients that the Secret is for. It is empty for the Secret
	// that all applications share.
	Client string `json:"client,omitempty"`
	// SignerSecret holds the CA with its key, for a cluster with a CA of its own.
	SignerSecret string `json:"signerSecret,omitempty"`
	// CASecret holds the CA that signs the certificates of the members.
	CASecret string `json:"caSecret,omitempty"`
	// CAKey, CertKey and KeyKey name the entries of these Secrets.
	CAKey   string `json:"caKey,omitempty"`
	CertKey string `json:"certKey,omitempty"`
	KeyKey  string `json:"keyKey,omitempty"`
	// Env are variables for etcdctl in a pod that mounts the Secret.
	Env []EnvVar `json:"env"`
	// MountPath is where the Secret is mounted in that pod.
	MountPath string `json:"mountPath,omitempty"`
}

// EnvVar is a variable and its value.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// NewConnection returns what an application needs.
func NewConnection(cluster *v1beta2.EtcdCluster) *Connection {
	service := cluster.Status.ServiceName
	if service == "" {
		service = resources.ClientServiceName(cluster)
	}
	c := &Connection{
		TypeMeta:  metav1.TypeMeta{APIVersion: APIVersion, Kind: "Connection"},
		Namespace: cluster.Namespace, Name: cluster.Name, Service: service, TLS: resources.HasClientTLS(cluster),
	}
	c.Endpoint = fmt.Sprintf("%s://%s.%s.svc%s:%d", scheme(c.TLS), service, cluster.Namespace, domain(cluster), resources.ClientPort)
	for i := range cluster.Status.MemberStatuses {
		c.MemberEndpoints = append(c.MemberEndpoints, resources.ClientURL(cluster, cluster.Status.MemberStatuses[i].Name))
	}
	c.Env = []EnvVar{{"ETCDCTL_API", "3"}, {"ETCDCTL_ENDPOINTS", c.Endpoint}}
	if c.TLS {
		c.addTLS(cluster)
	}
	return c
}

// NewClientConnection returns what the application needs that has this name in spec.clients.
func NewClientConnection(cluster *v1beta2.EtcdCluster, name string) (*Connection, error) {
	names := make([]string, 0, len(cluster.Spec.Clients))
	for i := range cluster.Spec.Clients {
		client := &cluster.Spec.Clients[i]
		if client.Name != name {
			names = append(names, client.Name)
			continue
		}
		c := NewConnection(cluster)
		c.Client, c.Secret = name, client.SecretOf(cluster.Name)
		if c.TLS {
			c.CASecret = c.Secret
		}
		return c, nil
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: EtcdCluster %s has no spec.clients; add {name: %s} to it, or omit --client", ErrNoClient, cluster.Name, name)
	}
	return nil, fmt.Errorf("%w: EtcdCluster %s has no client %s in spec.clients; choose %s", ErrNoClient, cluster.Name, name, strings.Join(names, ", "))
}

// addTLS names the Secrets. Of certificates that the user provides, the one of the members
// holds the CA; the certificate of a client is the user's own.
func (c *Connection) addTLS(cluster *v1beta2.EtcdCluster) {
	files := resources.Files(resources.UseServer, resources.FormatKubernetes)
	c.CAKey, c.CertKey, c.KeyKey, c.MountPath = files.CA, files.Cert, files.Key, mountDir
	if cluster.Spec.TLS.Static != nil {
		c.CASecret = resources.Secrets(cluster).Server
		c.CAKey = resources.Files(resources.UseServer, resources.FormatNamed).CA + " or " + files.CA
	} else {
		c.Secret = clientSecret(cluster)
		if cluster.Spec.TLS.Auto != nil {
			c.SignerSecret = resources.CASecret(cluster)
		}
		c.CASecret = c.Secret
	}
	c.Env = append(c.Env,
		EnvVar{"ETCDCTL_CACERT", mountDir + "/" + files.CA},
		EnvVar{"ETCDCTL_CERT", mountDir + "/" + files.Cert},
		EnvVar{"ETCDCTL_KEY", mountDir + "/" + files.Key})
}

// clientSecret is the Secret that the status names, or the one that will be issued.
func clientSecret(cluster *v1beta2.EtcdCluster) string {
	for i := range cluster.Status.Certificates {
		if c := &cluster.Status.Certificates[i]; c.Use == v1beta2.CertificateUseClient && c.SecretName != "" {
			return c.SecretName
		}
	}
	return cluster.Name + "-client-tls"
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}

func domain(cluster *v1beta2.EtcdCluster) string {
	if cluster.Spec.Pod == nil || cluster.Spec.Pod.ClusterDomain == "" {
		return ""
	}
	return "." + strings.TrimPrefix(cluster.Spec.Pod.ClusterDomain, ".")
}
