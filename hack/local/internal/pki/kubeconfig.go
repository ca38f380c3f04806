// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"text/template"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
)

// The keys are inside the file, so that it can be copied elsewhere as one piece.
var kubeconfig = template.Must(template.New("kubeconfig").Parse(`apiVersion: v1
kind: Config
clusters:
- name: etcd-operator-local
  cluster:
    server: {{.Server}}
    certificate-authority-data: {{.CA}}
users:
- name: {{.User}}
  user:
    client-certificate-data: {{.Certificate}}
    client-key-data: {{.Key}}
contexts:
- name: etcd-operator-local
  context:
    cluster: etcd-operator-local
    user: {{.User}}
current-context: etcd-operator-local
`))

func (s Store) writeKubeconfig(cert Certificate, server string) error {
	values := map[string]string{"Server": server, "User": cert.User}
	for value, file := range map[string]string{"CA": CA + ".crt", "Certificate": cert.Name + ".crt", "Key": cert.Name + ".key"} {
		raw, err := os.ReadFile(s.File(file))
		if err != nil {
			return fmt.Errorf("making the kubeconfig %s: %w", cert.Name, err)
		}
		values[value] = base64.StdEncoding.EncodeToString(raw)
	}
	var out bytes.Buffer
	if err := kubeconfig.Execute(&out, values); err != nil {
		return fmt.Errorf("making the kubeconfig %s: %w", cert.Name, err)
	}
	return process.WriteFile(s.Kubeconfig(cert.Name), out.Bytes(), 0o600)
}
