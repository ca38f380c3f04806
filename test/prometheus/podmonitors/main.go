// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig with which Prometheus finds pods, and this program reads Secrets")
	flag.StringVar(&o.monitoring, "monitoring", "artifacts/monitoring", "directory with PodMonitors and rules")
	flag.StringVar(&o.namespace, "namespace", "", "namespace to which PodMonitors of all namespaces are limited; empty: no limit")
	flag.StringVar(&o.interval, "interval", "30s", "interval of scrapes and of evaluations of the rules")
	out := flag.String("out", "prometheus.yaml", "file that gets the configuration")
	flag.Parse()
	if err := run(context.Background(), o, *out); err != nil {
		fmt.Fprintln(os.Stderr, "podmonitors:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out string) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	text, err := generate(ctx, client.CoreV1(), o)
	if err != nil {
		return err
	}
	// It has the contents of Secrets.
	return os.WriteFile(out, text, 0o600)
}
