// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controller turns EtcdClusters into running etcd clusters.
package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client and queue metrics
	"k8s.io/component-base/version/verflag"

	"github.com/etcd-operator/etcd-operator/pkg/controller/manager"
)

func main() {
	// Attempts to reach a member that is starting are not worth a line each; what
	// matters of them is in the status and in the errors of the controller.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr))
	options := manager.NewOptions()
	logging := logsapi.NewLoggingConfiguration()
	command := &cobra.Command{
		Use:          "controller",
		Short:        "Turns EtcdClusters into running etcd clusters",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			logs.InitLogs()
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return err
			}
			if err := options.Complete(); err != nil {
				return err
			}
			return manager.Run(command.Context(), options)
		},
	}
	options.AddFlags(command.Flags())
	logsapi.AddFlags(logging, command.Flags())
	verflag.AddFlags(command.Flags())
	command.SetContext(genericapiserver.SetupSignalContext())
	os.Exit(cli.Run(command))
}
