// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/agent/disk"
)

func diskTestCommand() *cobra.Command {
	var (
		writes     int
		limit      time.Duration
		resultFile string
	)
	c := &cobra.Command{
		Use:   string(agent.CommandDiskTest) + " DIRECTORY",
		Short: "Measure how long a disk takes to make the writes of etcd's log durable",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			out := c.OutOrStdout()
			test := &disk.Test{
				Dir: args[0], Writes: writes, Limit: limit, Clock: clock.RealClock{}, Sync: disk.Sync,
				Show: func(p *agent.DiskTest) error { _, err := printDiskTest(p, out); return err },
			}
			result, err := test.Run(c.Context())
			if err != nil {
				result = &agent.DiskTest{Wanted: writes, WriteBytes: agent.DiskTestWriteBytes, Error: err.Error()}
			}
			raw, printErr := printDiskTest(result, out)
			if printErr == nil {
				printErr = writeResult(raw, resultFile)
			}
			if err != nil && printErr == nil {
				return errNotDone
			}
			return errors.Join(err, printErr)
		},
	}
	c.Flags().IntVar(&writes, agent.DiskTestWritesFlag, agent.DiskTestWrites, "How many writes to make.")
	c.Flags().DurationVar(&limit, agent.DiskTestLimitFlag, agent.DiskTestLimit, "How long to write at most.")
	c.Flags().StringVar(&resultFile, agent.ResultFileFlag, terminationLog, "Where the result is written, beside the standard output.")
	return c
}

// printDiskTest prints a line of JSON and returns it.
func printDiskTest(t *agent.DiskTest, out io.Writer) ([]byte, error) {
	raw, err := t.Encode()
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(out, "%s\n", raw)
	return raw, err
}
