// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/apiclient"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/network"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/node"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

type nodeList struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status struct {
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

// readiness returns the names of the registered nodes, and whether each is Ready.
func readiness(ctx context.Context, client *apiclient.Client) (map[string]bool, error) {
	var list nodeList
	if err := client.Get(ctx, "/api/v1/nodes", &list); err != nil {
		return nil, err
	}
	ready := map[string]bool{}
	for _, item := range list.Items {
		ready[item.Metadata.Name] = false
		for _, condition := range item.Status.Conditions {
			if condition.Type == "Ready" {
				ready[item.Metadata.Name] = condition.Status == "True"
			}
		}
	}
	return ready, nil
}

func waitNodes(ctx context.Context, client *apiclient.Client, nodes []topology.Node) error {
	for {
		ready, err := readiness(ctx, client)
		var missing []string
		for _, n := range nodes {
			if !ready[n.Name()] {
				missing = append(missing, n.Name())
			}
		}
		if err == nil && len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("nodes not Ready: %s: %w", strings.Join(missing, ", "), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// NodeActions are the things that Node can do.
var NodeActions = []string{"kill", "start", "reboot", "partition", "heal", "kubelet-stop", "kubelet-start", "shell"}

// Node does something to one node: the failures that a test wants, and their ends.
func (c *Cluster) Node(ctx context.Context, action, name string, args []string) error {
	n, err := topology.ParseNode(name)
	if err != nil {
		return err
	}
	s, err := c.load()
	if err != nil {
		return err
	}
	if n.Index > s.Nodes {
		return fmt.Errorf("the cluster has no node %s, only %s", name, describe(s))
	}
	machine := c.machine(n, s.Kubernetes)
	if action == "shell" {
		return machine.Shell(args)
	}
	if !slices.Contains(NodeActions, action) || len(args) > 0 {
		return fmt.Errorf("a node can %s; what is %q?", strings.Join(NodeActions, ", "), strings.Join(append([]string{action}, args...), " "))
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return c.nodeAction(ctx, action, machine, s)
}

func (c *Cluster) nodeAction(ctx context.Context, action string, machine node.Machine, s settings) error {
	switch action {
	case "kill":
		return machine.Kill(ctx)
	case "start":
		return c.startNode(ctx, machine, s)
	case "reboot":
		if err := machine.Kill(ctx); err != nil {
			return err
		}
		return c.startNode(ctx, machine, s)
	case "partition":
		return network.SetConnected(ctx, machine.Node, false)
	case "heal":
		return network.SetConnected(ctx, machine.Node, true)
	case "kubelet-stop":
		return machine.StopKubelet(ctx)
	default:
		return machine.StartKubelet(ctx)
	}
}

func (c *Cluster) startNode(ctx context.Context, machine node.Machine, s settings) error {
	builder := c.builder(s.Kubernetes)
	if err := builder.Run(ctx); err != nil {
		return err
	}
	if err := machine.Boot(ctx, builder.Store, topology.Nodes(s.Nodes), s.Families); err != nil {
		return err
	}
	return machine.WaitRuntime(ctx)
}

// Load imports images into the nodes that run.
func (c *Cluster) Load(ctx context.Context, archives []string) error {
	s, err := c.load()
	if err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	defer c.Progress.Working("importing images")()
	nodes := topology.Nodes(s.Nodes)
	failures := make([]error, len(nodes))
	var loading sync.WaitGroup
	for i, n := range nodes {
		loading.Go(func() { failures[i] = c.loadInto(ctx, c.machine(n, s.Kubernetes), archives) })
	}
	loading.Wait()
	return errors.Join(failures...)
}

func (c *Cluster) loadInto(ctx context.Context, machine node.Machine, archives []string) error {
	n := machine.Node
	if _, ok := machine.InitPID(); !ok {
		c.Progress.Step("%s does not run: skipped; load again after booting it", n.Name())
		return nil
	}
	have, err := machine.Runtime().Images(ctx)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name(), err)
	}
	for _, archive := range archives {
		refs, err := machine.Runtime().Import(ctx, archive, have)
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Name(), err)
		}
		if len(refs) == 0 {
			c.Progress.Step("%s has the images of %s", n.Name(), archive)
		} else {
			c.Progress.Step("%s imported %s", n.Name(), strings.Join(refs, ", "))
		}
	}
	return nil
}
