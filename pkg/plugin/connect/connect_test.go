// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: here, cluster: {server: "https://here:6443"}}
- {name: there, cluster: {server: "https://there:6443"}}
users:
- {name: jane, user: {token: t}}
contexts:
- {name: here, context: {cluster: here, user: jane, namespace: prod}}
- {name: there, context: {cluster: there, user: jane}}
`

func TestConnect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args                  []string
		host, namespace, user string
		fails                 bool
	}{
		"the current context":  {args: []string{"--kubeconfig=" + file}, host: "https://here:6443", namespace: "prod"},
		"another namespace":    {args: []string{"--kubeconfig=" + file, "-n", "test"}, host: "https://here:6443", namespace: "test"},
		"another context":      {args: []string{"--kubeconfig=" + file, "--context=there"}, host: "https://there:6443", namespace: "default"},
		"another user":         {args: []string{"--kubeconfig=" + file, "--as=viewer"}, host: "https://here:6443", namespace: "prod", user: "viewer"},
		"no such context":      {args: []string{"--kubeconfig=" + file, "--context=none"}, fails: true},
		"no such file":         {args: []string{"--kubeconfig=" + file + "x"}, fails: true},
		"a file that is wrong": {args: []string{"--kubeconfig=" + os.DevNull}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			flags := &connect.Flags{UserAgent: "kubectl-etcd/test", Warnings: io.Discard}
			set := pflag.NewFlagSet("test", pflag.ContinueOnError)
			flags.Bind(set)
			if err := set.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			clients, err := flags.Connect()
			if (err != nil) != c.fails {
				t.Fatalf("got %v", err)
			}
			if c.fails {
				return
			}
			if clients.Config.Host != c.host || clients.Namespace != c.namespace || clients.Config.Impersonate.UserName != c.user ||
				clients.Config.UserAgent != "kubectl-etcd/test" || clients.Config.ContentType != "application/json" {
				t.Errorf("unexpected %s, namespace %s", clients.Config, clients.Namespace)
			}
		})
	}
}
