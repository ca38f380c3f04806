// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/bringback"
)

// newBringBackCommand returns the command that makes a data directory of a snapshot of the storage.
func newBringBackCommand() *cobra.Command {
	o := bringback.Options{}
	command := &cobra.Command{
		Use:   "bring-back",
		Short: "Make a data directory of a snapshot of the storage, with revisions after all of before",
		Long: "Make a data directory of a snapshot of the storage: that of a single API server, or with the flags about members that of one of\n" +
			"several. The revisions of the storage go on after all that were handed out before.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			if o.Revision == 0 {
				o.Revision = bringback.RevisionAt(time.Now())
			}
			log, err := zap.NewProduction()
			if err != nil {
				return err
			}
			return bringback.Fill(o, log)
		},
	}
	ownUsage(command)
	flags := command.Flags()
	flags.StringVar(&o.Snapshot, "snapshot", "etcd-operator.db", "The file to read.")
	flags.StringVar(&o.DataDir, "data-dir", "etcd.restored", "The directory to make. It appears when it is complete.")
	flags.StringVar(&o.Replaced, "replaces", "etcd", "The directory of the data of now, if there is one. Its revisions are before those of the new data.")
	flags.StringVar(&o.Name, "name", "embedded", "The name of the member.")
	flags.StringVar(&o.PeerURL, "peer-url", "http://localhost:2380", "The URL of the member for its peers.")
	flags.StringVar(&o.Members, "members", "embedded=http://localhost:2380", "All members, as NAME=URL with commas between them.")
	flags.StringVar(&o.Token, "token", "etcd-cluster", "Part of the identity of the cluster: a new token for each attempt to fill several members.")
	flags.Int64Var(&o.Revision, "revision", 0, "The first revision, the same for all members. 0 means one by the clock.")
	return command
}

// newSwapInCommand returns the command that puts a directory of bring-back into its place.
func newSwapInCommand() *cobra.Command {
	var restored, data, when string
	command := &cobra.Command{
		Use:          "swap-in",
		Short:        "Replace a data directory by one that bring-back has made, and keep it and the copy before as etcd-before-TIME",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			err := wait.PollUntilContextCancel(command.Context(), time.Second, true, func(context.Context) (bool, error) {
				if when == "" {
					return true, nil
				}
				_, err := os.Stat(when)
				if errors.Is(err, fs.ErrNotExist) {
					return false, nil
				}
				return err == nil, err
			})
			if err != nil {
				return err
			}
			return bringback.SwapIn(restored, data, time.Now())
		},
	}
	ownUsage(command)
	flags := command.Flags()
	flags.StringVar(&restored, "restored", "etcd.restored", "The directory that bring-back has made.")
	flags.StringVar(&data, "data-dir", "etcd", "The directory to replace. It may not exist.")
	flags.StringVar(&when, "when", "", "A file to wait for. Several members wait until the directory of each is made.")
	return command
}

// ownUsage makes a command print its own flags; the parent prints those of the server.
func ownUsage(command *cobra.Command) {
	command.SetUsageFunc((&cobra.Command{}).UsageFunc())
	command.SetHelpFunc((&cobra.Command{}).HelpFunc())
}
