// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"strings"
)

// Dump reports the objects, events and logs that explain a failure in a namespace, one kubectl
// command at a time.
func (e *Environment) Dump(ctx context.Context, namespace string, report func(command, output string)) {
	for _, args := range [][]string{
		{"get", "etcd,etcdbackups,etcdrestores,jobs,pods,pvc,services,pdb", "-n", namespace, "-o", "wide"},
		{"get", "etcd,etcdbackups,etcdrestores", "-n", namespace, "-o", "yaml"},
		{"get", "events", "-n", namespace, "--sort-by=.metadata.creationTimestamp"},
		{"logs", "-n", namespace, "-l", "app=etcd", "--prefix", "--tail=15", "--max-log-requests=30"},
		{"get", "pods", "-n", SystemNamespace, "-o", "wide"},
		{"logs", "-n", SystemNamespace, "deployment/" + Controller, "--tail=120"},
		{"logs", "-n", SystemNamespace, "deployment/" + APIServer, "--tail=40"},
	} {
		out, err := e.Kubectl(ctx, Command{Args: args})
		if err != nil {
			out += err.Error()
		}
		report("kubectl "+strings.Join(args, " "), out)
	}
}
