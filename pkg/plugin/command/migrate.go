// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// migrateOptions are the flags of every migration.
type migrateOptions struct {
	yes, dryRun bool
	timeout     time.Duration
}

func (o *migrateOptions) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&o.yes, "yes", "y", false, "carry the plan out without a question")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the plan and change nothing, which is the default without a terminal")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long to wait for each step, such as 10m; 0 is no limit")
}

func (a *app) migrateCommand() *cobra.Command {
	return group(&cobra.Command{Use: "migrate", Short: "Take over an etcd that another program runs"},
		a.migrateSnapshotCommand(), a.migrateJoinCommand(), a.migrateFinishCommand(), a.migrateOperatorCommand())
}

// confirmMigration returns whether the plan is to be carried out. Without a terminal and
// without --yes a migration is a dry run.
func (a *app) confirmMigration(ctx context.Context, o *migrateOptions, question, expected string) (bool, error) {
	switch {
	case o.dryRun:
		fmt.Fprintln(a.Out, "Nothing was changed: --dry-run was given.")
		return false, nil
	case o.yes:
		return true, nil
	case !a.InTerminal:
		fmt.Fprintln(a.Out, "Nothing was changed. To carry the plan out, add --yes.")
		return false, nil
	}
	fmt.Fprint(a.Err, question)
	reply, err := a.readReply(ctx)
	if err != nil {
		return false, err
	}
	if reply != expected {
		return false, errDeclined
	}
	return true, nil
}

// followStep shows a step of a migration until it is done. A step that is interrupted
// continues, and so does the migration if the command runs again.
func (a *app) followStep(ctx context.Context, o *migrateOptions, title string, look func(context.Context) (state, error)) error {
	err := a.follow(ctx, a.line(title), o.timeout, look)
	if err == nil {
		return nil
	}
	const continues = "; type the same command again to continue the migration"
	switch code := failure.CodeOf(err); {
	case ctx.Err() != nil:
		return failure.Interrupted("interrupted: " + title + continues)
	case code == failure.CodeTimedOut:
		return failure.TimedOut(title + ": " + err.Error() + continues)
	default:
		return err
	}
}
