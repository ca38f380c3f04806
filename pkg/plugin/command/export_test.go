// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Parse checks that a command line names a command, flags that the command has, and as many
// arguments as the command takes. It runs nothing. A command alone is only looked up.
func Parse(args []string) error {
	root := (&app{}).root()
	root.InitDefaultCompletionCmd(args...)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	err = cmd.ParseFlags(rest)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
	}
	if len(args) == 1 { // a page may name a command without its arguments
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
