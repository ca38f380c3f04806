// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command network-policies enforces the NetworkPolicies of the cluster on one node, for
// pods with IPv4 addresses. It is the network policy controller of kube-router without
// the router and the service proxy. It runs in the network namespace of the node until
// its standard input ends, and removes its rules then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cloudnativelabs/kube-router/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// cacheTimeout bounds the wait for the pods, namespaces and policies of the cluster.
const cacheTimeout = time.Minute

func main() {
	config := options.NewKubeRouterConfig()
	flag.StringVar(&config.HostnameOverride, "node", "", "name of the node that this program runs on")
	flag.StringVar(&config.Kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "file with the address and credentials of the API server")
	flag.StringVar(&config.ClusterIPCIDR, "service-cluster-ip-range", config.ClusterIPCIDR, "IPv4 addresses of Services")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, ended := context.WithCancel(ctx)
	go func() {
		defer ended()
		// Nothing is ever sent: the end of the input is the end of the caller.
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	if err := enforce(ctx, config); err != nil {
		fmt.Fprintf(os.Stderr, "network-policies: %v\n", err)
		os.Exit(1)
	}
}

// enforce keeps the rules of the node equal to the policies until ctx ends.
func enforce(ctx context.Context, config *options.KubeRouterConfig) error {
	if config.HostnameOverride == "" {
		return errors.New("--node is empty: name the node that this program runs on")
	}
	rest, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading --kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(ctx.Done())
	syncing, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	for kind, synced := range factory.WaitForCacheSync(syncing.Done()) {
		if !synced {
			return fmt.Errorf("listing objects of type %v: no response within %v", kind, cacheTimeout)
		}
	}
	var ipsets sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &ipsets)
	if err != nil {
		return fmt.Errorf("starting the controller: %w", err)
	}
	pods.AddEventHandler(controller.PodEventHandler)
	namespaces.AddEventHandler(controller.NamespaceEventHandler)
	policies.AddEventHandler(controller.NetworkPolicyEventHandler)

	var running sync.WaitGroup
	heartbeats := make(chan *healthcheck.ControllerHeartbeat)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for range heartbeats { //nolint:revive // kube-router waits until each one is read
		}
	}()
	running.Add(1)
	go controller.Run(heartbeats, ctx.Done(), &running)
	fmt.Fprintf(os.Stderr, "network-policies: enforcing on node %s\n", config.HostnameOverride)
	running.Wait()
	close(heartbeats)
	<-drained
	controller.Cleanup()
	return nil
}
