// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command apiserver serves the API group etcd.database.coreos.com behind
// kube-aggregator.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	// The image has no root certificates. These are the fallback for admission webhooks and for
	// an etcd with a public certificate.
	_ "golang.org/x/crypto/x509roots/fallback"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/options"
)

// helpColumns is the width of the help.
const helpColumns = 100

// garbagePercent is how much the heap grows between two collections, in percent of what lives. The
// heap is small, and a collection visits all of it: with the default of 100 a busy server spends
// a fifth of its CPU time on collections.
const garbagePercent = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	server, err := options.New()
	if err != nil {
		fmt.Fprintln(os.Stderr, "The default options are invalid:", err)
		os.Exit(1)
	}
	os.Exit(cli.Run(newCommand(server)))
}

func newCommand(server *options.Options) *cobra.Command {
	logging := logs.NewOptions()
	command := &cobra.Command{
		Use:          "apiserver",
		Short:        "Serve EtcdCluster, EtcdBackup and EtcdRestore behind kube-aggregator",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := server.ServerRun.ComponentGlobalsRegistry.Set(); err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(logging, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			cliflag.PrintFlags(command.Flags())
			if err := server.Validate(); err != nil {
				return err
			}
			return server.Run(genericapiserver.SetupSignalContext())
		},
	}

	sets := cliflag.NamedFlagSets{}
	server.AddFlags(&sets)
	logsapi.AddFlags(logging, sets.FlagSet("logs"))
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	command.AddCommand(newRebuildCommand(), newBringBackCommand(), newSwapInCommand(), newTakeOutCommand())
	cliflag.SetUsageAndHelpFunc(command, sets, helpColumns)
	return command
}
