// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// Connection writes what an application needs to reach a cluster.
func Connection(w io.Writer, c *report.Connection, style Style) {
	line := func(label, text string) { fmt.Fprintf(w, "%-*s %s\n", labelWidth, label, text) }
	line("endpoint", style.paint(bold, c.Endpoint))
	if len(c.MemberEndpoints) > 0 {
		line("members", strings.Join(c.MemberEndpoints, ","))
	}
	switch {
	case !c.TLS && c.Client != "":
		line("binding", "Secret "+c.Secret+" has the endpoint; clients need no certificate")
	case c.Client != "":
		line("binding", fmt.Sprintf("Secret %s has the endpoint, the certificate of client %s (%s, %s) and the CA (%s)", c.Secret, c.Client, c.CertKey, c.KeyKey, c.CAKey))
	case !c.TLS:
		line("TLS", "none: clients need no certificate")
	case c.Secret != "":
		line("TLS", fmt.Sprintf("Secret %s has the certificate of a client (%s, %s) and the CA (%s)", c.Secret, c.CertKey, c.KeyKey, c.CAKey))
	default:
		line("TLS", fmt.Sprintf("Secret %s has the CA (%s); issue the certificate of your client from that CA", c.CASecret, c.CAKey))
	}
	fmt.Fprintln(w, "\nEnvironment of a client in a pod of namespace "+c.Namespace+":")
	for _, e := range c.Env {
		fmt.Fprintf(w, "  %s=%s\n", e.Name, e.Value)
	}
	if c.TLS {
		secret := c.Secret
		if secret == "" {
			secret = "YOUR-CLIENT-SECRET"
		}
		fmt.Fprintf(w, "\nIn the pod:\n  containers: [{volumeMounts: [{name: etcd-client, mountPath: %s, readOnly: true}]}]\n  volumes: [{name: etcd-client, secret: {secretName: %s}}]\n",
			c.MountPath, secret)
	}
	fmt.Fprintf(w, "\nFrom another machine:\n  kubectl -n %s port-forward service/%s 2379:2379\n", c.Namespace, c.Service)
}

// Env writes the variables for a shell.
func Env(w io.Writer, c *report.Connection) {
	for _, e := range c.Env {
		fmt.Fprintf(w, "export %s=%s\n", e.Name, e.Value)
	}
}
