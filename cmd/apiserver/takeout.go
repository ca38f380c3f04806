// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
)

// newTakeOutCommand returns the command that makes a snapshot of the data of an API server that has ended.
func newTakeOutCommand() *cobra.Command {
	var directory, output string
	command := &cobra.Command{
		Use:   "take-out",
		Short: "Make a snapshot of the storage of a single API server that has ended",
		Long: "Make a snapshot of the storage of a single API server that has ended. It has what etcd had only in its log, too: a copy of the\n" +
			"database file lacks that if the API server was killed.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			server, err := embeddedetcd.Start(command.Context(), directory)
			if err != nil {
				return err
			}
			defer server.Stop()
			return server.Save(command.Context(), output)
		},
	}
	ownUsage(command)
	command.Flags().StringVar(&directory, "embedded-etcd-dir", "/data", "The --embedded-etcd-dir of the API server.")
	command.Flags().StringVar(&output, "output", "etcd-operator.db", "The file to write.")
	return command
}
