// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-etcd is the kubectl plugin of the operator: kubectl etcd.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := command.Run(ctx, os.Args[1:], command.System())
	stop()
	os.Exit(int(code))
}
