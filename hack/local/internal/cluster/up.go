// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/addons"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/apiclient"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/build"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/controlplane"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/network"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/node"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

// Request is what a user asks of Up; nil leaves a value as it is.
type Request struct {
	Nodes             *int
	Audit             *bool
	TolerationSeconds *int
	Families          *topology.Families
	Kubernetes        *kubernetes.Release
	// Tour leaves out programs and images that only tests use.
	Tour bool
}

// defaultTolerationSeconds is Kubernetes' own default.
const defaultTolerationSeconds = 300

// readyTimeout bounds the wait for nodes and addons.
const readyTimeout = 5 * time.Minute

// merge returns the settings that a request asks for, given those of the existing
// cluster (none: exists is false), on a machine that has IPv6 or not.
func (r Request) merge(old settings, exists, hasIPv6 bool) (settings, error) {
	s := old
	if !exists {
		s = settings{Nodes: 1, TolerationSeconds: defaultTolerationSeconds, Families: topology.IPv4, Kubernetes: kubernetes.Newest()}
		if hasIPv6 {
			s.Families = topology.Dual
		}
	}
	if r.Nodes != nil {
		s.Nodes = *r.Nodes
	}
	if r.Audit != nil {
		s.Audit = *r.Audit
	}
	if r.TolerationSeconds != nil {
		s.TolerationSeconds = *r.TolerationSeconds
	}
	if r.Families != nil {
		s.Families = *r.Families
	}
	if r.Kubernetes != nil {
		s.Kubernetes = *r.Kubernetes
	}
	if s.Families.HasIPv6() && !hasIPv6 {
		return s, fmt.Errorf("this machine has no IPv6 (see /proc/sys/net/ipv6/conf/*/disable_ipv6): a cluster here has IPv4 alone")
	}
	if exists && s.Families.Name() != old.Families.Name() {
		return s, fmt.Errorf("the cluster has %s and cannot change to %s: take it down first (this deletes everything in it), then bring it up again", old.Families.Text(), s.Families.Text())
	}
	if exists && s.Kubernetes != old.Kubernetes {
		return s, fmt.Errorf("the cluster runs Kubernetes %s and cannot change to %s: take it down first (this deletes everything in it), then bring it up again",
			old.Kubernetes.Minor(), s.Kubernetes.Minor())
	}
	if s.Nodes < 1 || s.Nodes > topology.MaxNodes {
		return s, fmt.Errorf("a cluster has 1 to %d nodes, not %d", topology.MaxNodes, s.Nodes)
	}
	if s.TolerationSeconds < 0 {
		return s, fmt.Errorf("pods cannot tolerate a lost node for %d seconds", s.TolerationSeconds)
	}
	if exists && s.Nodes < old.Nodes {
		return s, fmt.Errorf("the cluster has %d nodes and cannot shrink to %d: take it down first (this deletes everything in it), then bring it up again", old.Nodes, s.Nodes)
	}
	return s, nil
}

// Up brings the cluster to what is requested, from wherever it is: it starts what
// does not run and leaves alone what does.
func (c *Cluster) Up(ctx context.Context, request Request) error {
	if err := checkKernel(ctx); err != nil {
		return err
	}
	// What is wrong with the request is reported before anything is built for it.
	planned, _, err := c.desired(request)
	if err != nil {
		return err
	}
	builder := c.builder(planned.Kubernetes)
	builder.Tour = request.Tour
	if err := builder.Run(ctx); err != nil {
		return err
	}
	if err := c.checkOthers(); err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	desired, exists, err := c.desired(request)
	if err != nil {
		return err
	}
	if desired.Kubernetes != builder.Kubernetes {
		return fmt.Errorf("the programs of Kubernetes %s were built, but another command has brought up a cluster with %s meanwhile: run the command again",
			builder.Kubernetes.Minor(), desired.Kubernetes.Minor())
	}
	if err := network.CheckFree(ctx, desired.Families); err != nil {
		return err
	}
	if !exists && !network.HasIPv6() && request.Families == nil {
		c.Progress.Step("this machine has no IPv6: the cluster gets IPv4 alone")
	}
	if err := c.save(desired); err != nil {
		return err
	}
	if err := c.endStrays(ctx); err != nil {
		return err
	}
	started, err := c.converge(ctx, desired, builder)
	if err != nil {
		return err
	}
	if started == 0 {
		c.Progress.Step("the cluster is already up with Kubernetes %s, %s and %s", desired.Kubernetes.Minor(), describe(desired), desired.Families.Text())
	} else {
		c.Progress.Step("the cluster is up with Kubernetes %s, %s and %s", desired.Kubernetes.Minor(), describe(desired), desired.Families.Text())
	}
	return nil
}

// desired returns the settings that the request asks for, and whether there is a cluster.
func (c *Cluster) desired(request Request) (settings, bool, error) {
	old, err := c.load()
	exists := err == nil
	if err != nil && !errors.Is(err, ErrDown) {
		return settings{}, false, err
	}
	desired, err := request.merge(old, exists, network.HasIPv6())
	return desired, exists, err
}

func describe(s settings) string {
	var names []string
	for _, n := range topology.Nodes(s.Nodes) {
		names = append(names, n.Name())
	}
	word := "nodes"
	if s.Nodes == 1 {
		word = "node"
	}
	return fmt.Sprintf("%d %s (%s)", s.Nodes, word, strings.Join(names, ", "))
}

// endStrays kills what an interrupted run started but did not record: whatever
// carries the cluster's mark and does not descend from a recorded program.
func (c *Cluster) endStrays(ctx context.Context) error {
	marked, err := process.Marked()
	if err != nil {
		return err
	}
	known := map[int]bool{os.Getpid(): true}
	names, err := c.table().Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		record, ok := c.table().Get(name)
		if !ok {
			continue
		}
		family, err := process.Descendants(record.PID)
		if err != nil {
			return err
		}
		for _, stat := range family {
			known[stat.PID] = true
		}
	}
	var strays []process.Stat
	for _, stat := range marked[c.Layout.State] {
		if !known[stat.PID] && stat.IsAlive() {
			c.Progress.Step("ending process %d (%s), left by an interrupted run", stat.PID, process.Program(stat.PID))
			strays = append(strays, stat)
		}
	}
	return process.End(ctx, strays, 0)
}

// converge starts whatever is missing and waits until all of it works. It returns
// how many things it had to start.
func (c *Cluster) converge(ctx context.Context, desired settings, builder *build.Builder) (int, error) {
	if err := network.EnsureControlPlane(ctx, desired.Families); err != nil {
		return 0, err
	}
	cp := &controlplane.ControlPlane{Layout: c.Layout, Table: c.table(), Options: desired.options(), Progress: c.Progress}
	if err := cp.EnsureCertificates(); err != nil {
		return 0, err
	}

	// The nodes boot while the control plane starts: each waits for the other only
	// where it must.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var repaired int
	var nodesErr error
	var booting sync.WaitGroup
	booting.Go(func() {
		repaired, nodesErr = c.bootNodes(ctx, desired, builder)
		if nodesErr != nil {
			cancel(nodesErr)
		}
	})
	client, err := cp.Up(ctx)
	if err == nil {
		err = addons.Apply(ctx, client, desired.Nodes, desired.Families)
	}
	if err != nil {
		cancel(err)
	}
	booting.Wait()
	if nodesErr != nil && !errors.Is(nodesErr, context.Canceled) {
		return 0, nodesErr
	}
	if err != nil {
		return 0, err
	}
	started := cp.Started + repaired
	return started, c.waitReady(ctx, client, desired, started > 0)
}

// bootNodes boots the nodes that do not run, and puts right what the node command
// did to those that do. It returns how many it touched.
func (c *Cluster) bootNodes(ctx context.Context, desired settings, builder *build.Builder) (int, error) {
	nodes := topology.Nodes(desired.Nodes)
	touched := 0
	var booting []node.Machine
	for _, n := range nodes {
		machine := c.machine(n, desired.Kubernetes)
		if _, running := machine.InitPID(); running {
			repaired, err := c.repair(ctx, machine)
			if err != nil {
				return touched, err
			}
			if repaired {
				touched++
			}
			continue
		}
		if err := machine.Boot(ctx, builder.Store, nodes, desired.Families); err != nil {
			return touched, err
		}
		booting = append(booting, machine)
		touched++
	}
	for _, machine := range booting {
		if err := machine.WaitRuntime(ctx); err != nil {
			return touched, err
		}
		c.Progress.Step("node %s has booted", machine.Node.Name())
	}
	for _, n := range nodes {
		imported, err := c.machine(n, desired.Kubernetes).EnsureImages(ctx, builder.Store, builder.Archives)
		if err != nil {
			return touched, err
		}
		if len(imported) > 0 {
			c.Progress.Step("node %s imported %s", n.Name(), strings.Join(imported, ", "))
			touched++
		}
	}
	return touched, nil
}

// repair heals a partition and starts a stopped kubelet.
func (c *Cluster) repair(ctx context.Context, machine node.Machine) (bool, error) {
	repaired := false
	connected, err := network.Connected(ctx, machine.Node)
	if err != nil {
		return false, err
	}
	if !connected {
		c.Progress.Step("putting node %s back on the network", machine.Node.Name())
		if err := network.SetConnected(ctx, machine.Node, true); err != nil {
			return false, err
		}
		repaired = true
	}
	if !machine.IsKubeletRunning() {
		c.Progress.Step("starting the kubelet of node %s", machine.Node.Name())
		if err := machine.StartKubelet(ctx); err != nil {
			return false, err
		}
		repaired = true
	}
	return repaired, nil
}

// waitReady waits until the cluster can run pods.
func (c *Cluster) waitReady(ctx context.Context, client *apiclient.Client, desired settings, report bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	waiting := c.Progress.Working("waiting for the nodes")
	err := waitNodes(ctx, client, topology.Nodes(desired.Nodes))
	waiting()
	if err != nil {
		return fmt.Errorf("%w; see the logs in %s", err, c.Layout.Logs())
	}
	if report {
		c.Progress.Step("all nodes are Ready")
	}
	defer c.Progress.Working("waiting for the addons")()
	if err := addons.Wait(ctx, client); err != nil {
		return fmt.Errorf("%w; see kubectl --namespace kube-system get pods", err)
	}
	// Without it no pod can be created in the namespace default.
	for {
		err := client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", &struct{}{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the controller manager makes no service accounts: %w; see its log in %s", err, c.Layout.Logs())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
