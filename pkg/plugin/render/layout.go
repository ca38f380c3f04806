// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/template"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// Layouts are the names of the consumers that Layout writes for, in alphabetical order.
func Layouts() []string { return []string{"apisix", "capi", "cilium", "kamaji", "vcluster"} }

// layouts are what other programs take to keep their data in a cluster. They name Secrets and
// hold nothing that is secret. Where a program wants a Secret in another namespace, or with
// other names of entries, the layout has a command that copies it.
var layouts = map[string]string{
	"apisix": `# Values of the Helm chart apisix, for a release in namespace {{.Namespace}}.
etcd:
  enabled: false{{if .TLS}}
  auth:
    tls:
      enabled: true
      existingSecret: {{.Secret}}
      certFilename: tls.crt
      certKeyFilename: tls.key
      sni: {{.Host}}
      verify: true
apisix:
  ssl:
    existingCASecret: {{.Secret}}
    certCAFilename: ca.crt{{end}}
externalEtcd:
  host: [{{.Endpoint}}]
`,
	"capi": `# Part of a KubeadmControlPlane. Its machines must reach the endpoint: give the client Service
# an address for them with spec.services.client.
spec:
  kubeadmConfigSpec:
    clusterConfiguration:
      etcd:
        external:
          endpoints: [{{.Endpoint}}]{{if .TLS}}
          caFile: /etc/kubernetes/pki/etcd/ca.crt
          certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt
          keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key
# Cluster API reads two Secrets in the namespace of the Cluster, here called WORKLOAD. Repeat the
# commands after each renewal of the certificate.
# {{copySecret . "WORKLOAD-etcd" "NAMESPACE" "tls.crt=ca.crt"}}
# {{copySecret . "WORKLOAD-apiserver-etcd-client" "NAMESPACE" "tls.crt=tls.crt" "tls.key=tls.key"}}{{end}}
`,
	"cilium": `# Values of the Helm chart cilium. Cilium must resolve and reach the endpoint before it runs:
# use a cluster whose members do not depend on this Cilium.
etcd:
  enabled: true
  endpoints: [{{.Endpoint}}]
  ssl: {{.TLS}}{{if .TLS}}
# Cilium reads the Secret cilium-etcd-secrets in its own namespace. Repeat the command after each
# renewal of the certificate.
# {{copySecret . "cilium-etcd-secrets" "kube-system" "etcd-client-ca.crt=ca.crt" "etcd-client.crt=tls.crt" "etcd-client.key=tls.key"}}{{end}}
`,
	"kamaji": `# Kamaji makes a user and a certificate for each tenant: it needs the key of the CA, and with
# etcd's own authorization a client with commonName root.
apiVersion: kamaji.clastix.io/v1alpha1
kind: DataStore
metadata:
  name: {{.Name}}
spec:
  driver: etcd
  endpoints: ["{{.Address}}"]
  tlsConfig:
    certificateAuthority:
      certificate:
        secretReference: {name: {{.SignerSecret}}, namespace: {{.Namespace}}, keyPath: tls.crt}
      privateKey:
        secretReference: {name: {{.SignerSecret}}, namespace: {{.Namespace}}, keyPath: tls.key}
    clientCertificate:
      certificate:
        secretReference: {name: {{.Secret}}, namespace: {{.Namespace}}, keyPath: tls.crt}
      privateKey:
        secretReference: {name: {{.Secret}}, namespace: {{.Namespace}}, keyPath: tls.key}
`,
	"vcluster": `# vcluster.yaml of a virtual cluster in namespace {{.Namespace}}.
controlPlane:
  backingStore:
    etcd:
      external:
        enabled: true
        endpoint: {{.Endpoint}}{{if .TLS}}
        tls:
          caFile: {{.MountPath}}/ca.crt
          certFile: {{.MountPath}}/tls.crt
          keyFile: {{.MountPath}}/tls.key
  statefulSet:
    persistence:
      addVolumes:
        - {name: etcd-client, secret: {secretName: {{.Secret}}}}
      addVolumeMounts:
        - {name: etcd-client, mountPath: {{.MountPath}}, readOnly: true}{{end}}
`,
}

// layoutData is what a layout is filled with.
type layoutData struct {
	*report.Connection
	// Host and Address of the client Service, without and with the port.
	Host, Address string
}

// Layout writes what a consumer takes, which is one of Layouts. The error says what the cluster
// lacks for that.
func Layout(w io.Writer, consumer string, c *report.Connection) error {
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", c.Endpoint, err)
	}
	switch {
	case c.TLS && c.Secret == "":
		return fmt.Errorf("the certificates of clients of %s are your own, so no Secret is known; put your client's certificate where -o %s of a cluster with spec.TLS.auto has it", c.Name, consumer)
	case consumer == "kamaji" && c.SignerSecret == "":
		return fmt.Errorf("kamaji needs the key of the CA, which %s has only with spec.TLS.auto", c.Name)
	}
	parsed, err := template.New(consumer).Funcs(template.FuncMap{"copySecret": copySecret}).Parse(layouts[consumer])
	if err != nil {
		return fmt.Errorf("layout %s: %w", consumer, err)
	}
	return parsed.Execute(w, layoutData{Connection: c, Host: endpoint.Hostname(), Address: endpoint.Host})
}

// copySecret returns a command that copies entries of the Secret of a client, each written as
// new=old. The entries go from one kubectl to the other and are not shown.
func copySecret(c layoutData, name, namespace string, entries ...string) string {
	var data strings.Builder
	for _, entry := range entries {
		to, from, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&data, `,"%s":"{{index .data "%s"}}"`, to, from)
	}
	return fmt.Sprintf(`kubectl -n %s get secret %s -o go-template='{"apiVersion":"v1","kind":"Secret","metadata":{"name":"%s"},"data":{%s}}' | kubectl -n %s apply -f -`,
		c.Namespace, c.Secret, name, strings.TrimPrefix(data.String(), ","), namespace)
}
