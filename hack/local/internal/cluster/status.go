// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/controlplane"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/network"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/node"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

// Status prints what runs, with process ids and memory (proportional set size,
// which counts shared pages once), and what Kubernetes thinks of the nodes.
func (c *Cluster) Status(ctx context.Context, out io.Writer) error {
	s, err := c.load()
	if err != nil {
		return err
	}
	ready := map[string]bool{}
	api := "answers"
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if client, err := controlplane.Client(c.Layout, s.Families); err != nil {
		api = err.Error()
	} else if ready, err = readiness(ctx, client); err != nil {
		api = err.Error()
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "Kubernetes %s\n", s.Kubernetes.Version)
	fmt.Fprintln(table, "NAME\tPID\tMEMORY\tSTATE")
	for _, name := range controlplane.Components() {
		state := ""
		if name == controlplane.APIServer {
			state = api
		}
		record, ok := c.table().Get(name)
		if !ok {
			fmt.Fprintf(table, "%s\t-\t-\tdoes not run\n", name)
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", name, record.PID, mebibytes(process.Memory(record.PID)), state)
	}
	for _, n := range topology.Nodes(s.Nodes) {
		if err := c.nodeStatus(ctx, table, c.machine(n, s.Kubernetes), ready); err != nil {
			return err
		}
	}
	return table.Flush()
}

func (c *Cluster) nodeStatus(ctx context.Context, table io.Writer, machine node.Machine, ready map[string]bool) error {
	n := machine.Node
	pid, ok := machine.InitPID()
	if !ok {
		_, err := fmt.Fprintf(table, "%s\t-\t-\tdoes not run\n", n.Name())
		return err
	}
	state := "NotReady"
	if ready[n.Name()] {
		state = "Ready"
	}
	if connected, err := network.Connected(ctx, n); err == nil && !connected {
		state += ", partitioned"
	}
	if !machine.IsKubeletRunning() {
		state += ", kubelet stopped"
	}
	family, err := process.Descendants(pid)
	if err != nil {
		return err
	}
	var total int64
	for _, stat := range family {
		total += process.Memory(stat.PID)
	}
	if _, err := fmt.Fprintf(table, "%s\t%d\t%s\t%s (%d processes)\n", n.Name(), pid, mebibytes(total), state, len(family)); err != nil {
		return err
	}
	for _, stat := range family {
		program := process.Program(stat.PID)
		if stat.Parent != pid || !slices.Contains(node.Daemons, program) {
			continue
		}
		if _, err := fmt.Fprintf(table, "  %s\t%d\t%s\t\n", program, stat.PID, mebibytes(process.Memory(stat.PID))); err != nil {
			return err
		}
	}
	return nil
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }
