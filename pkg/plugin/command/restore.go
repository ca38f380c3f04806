// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

var (
	// errRestore means that a restore failed.
	errRestore = errors.New("the restore failed")
	// errOtherSource means that the backup which the plan showed is not the one that would be restored now.
	errOtherSource = errors.New("nothing was restored, because another backup would be")
)

func (a *app) restoreCommand() *cobra.Command {
	o, backup, revision := &changeOptions{}, "", int64(0)
	cmd := &cobra.Command{
		Use:   "restore NAME",
		Short: "Replace the data of a cluster with that of a backup",
		Example: `  kubectl etcd restore prod --dry-run
  kubectl etcd restore prod --backup nightly --revision 81233`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			if revision != 0 && backup == "" {
				return failure.Usage("--revision needs --backup, which names the EtcdBackup that has this revision")
			}
			return a.restore(cmd.Context(), o, args[0], backup, revision)
		},
	}
	o.bind(cmd)
	cmd.Flags().StringVar(&backup, "backup", "", "EtcdBackup to restore; by default the newest one that was verified")
	cmd.Flags().Int64Var(&revision, "revision", 0, "revision of one backup in the history of --backup; by default the newest")
	return cmd
}

func (a *app) restore(ctx context.Context, o *changeOptions, name, backup string, revision int64) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	send := func(ctx context.Context, dryRun bool) (*v1beta2.EtcdRestore, error) {
		body := &v1beta2.EtcdRestore{ObjectMeta: t.meta()}
		if backup != "" {
			body.Spec.Backup = &v1beta2.BackupReference{Name: backup}
		}
		if revision != 0 {
			body.Spec.Backup.Revision = &revision
		}
		response, err := t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).Restore(ctx, name, body, metav1.CreateOptions{DryRun: dry(dryRun)})
		return response, failure.With(err, t.right("create", "etcdclusters/restore"))
	}
	shown := ""
	return a.carryOut(ctx, o, t, change{
		title:     "Restore of " + t.String(),
		losesData: true,
		plan: func(ctx context.Context) ([]string, error) {
			planned, err := send(ctx, true)
			if err != nil {
				return nil, err
			}
			shown = source(&planned.Spec)
			lines := []string{
				fmt.Sprintf("Restore of %s in place from %s.", t, shown),
				"  Writes after that backup are lost. The backup is verified before anything changes.",
			}
			if last := t.cluster.Status.LastBackup; isOf(last, planned.Spec.Backup) {
				lines = append(lines, fmt.Sprintf("  The last backup is of %s.", last.Time.UTC().Format(time.RFC3339)))
			}
			return lines, nil
		},
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			// A backup that was stored while the user read the plan may hold what the restore is to undo.
			now, err := send(ctx, true)
			if err != nil {
				return nil, "", err
			}
			if source(&now.Spec) != shown {
				return nil, "", fmt.Errorf("%w: the plan was from %s, and the last backup is %s by now; read the plan again, or name the backup with --backup and --revision", errOtherSource, shown, source(&now.Spec))
			}
			created, err := send(ctx, false)
			if err != nil {
				return nil, "", err
			}
			fmt.Fprintf(a.Out, "EtcdRestore %s was created.\n", created.Name)
			return func(ctx context.Context) (state, error) { return lookAtRestore(ctx, t, created.Name) }, "", nil
		},
	})
}

// isOf is true if the last backup is the one that a restore names.
func isOf(last *v1beta2.LastBackup, named *v1beta2.BackupReference) bool {
	return last != nil && named != nil && last.Name == named.Name && ptr.Deref(named.Revision, last.Revision) == last.Revision
}

// source says from where a restore reads.
func source(spec *v1beta2.RestoreSpec) string {
	if spec.Backup == nil {
		return string(spec.BackupStorageType)
	}
	text := "EtcdBackup " + spec.Backup.Name
	if spec.Backup.Revision != nil {
		text += fmt.Sprintf(", revision %d", *spec.Backup.Revision)
	}
	return text
}

func lookAtRestore(ctx context.Context, t *target, name string) (state, error) {
	restore, err := t.Etcd.EtcdV1beta2().EtcdRestores(t.cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return state{}, failure.With(err, t.right("get", "etcdrestores"))
	}
	status := &restore.Status
	switch status.Phase {
	case v1beta2.RestorePhaseFailed:
		return state{}, fmt.Errorf("%w: %s; see kubectl -n %s describe etcdrestore %s", errRestore, status.Reason, restore.Namespace, name)
	case v1beta2.RestorePhaseSucceeded:
		outcome := fmt.Sprintf("Restore %s is done: %s serves the data of revision %d.", name, t, status.Revision)
		if status.PreRestoreBackup != nil {
			outcome += fmt.Sprintf(" EtcdBackup %s has the data from before.", status.PreRestoreBackup.Backup)
			switch {
			case status.PreRestoreBackup.DataDiffers:
				outcome += " The data of the old members differed (alarm CORRUPT), and it has that of one of them, so their PVCs are kept."
			case status.PreRestoreBackup.Unconfirmed:
				outcome += " No quorum confirmed it, so the PVCs of the old members are kept: one of them may have newer writes."
			}
		}
		return state{done: true, outcome: outcome}, nil
	default:
		step := transfer(string(status.Phase), status.Progress)
		if why := cmp.Or(status.Reason, describeWait(status)); why != "" {
			step.Text += ": " + why
		}
		return state{step: step}, nil
	}
}

// describeWait returns what a restore waits for; empty if it goes on.
func describeWait(status *v1beta2.RestoreStatus) string {
	if c := meta.FindStatusCondition(status.Conditions, "Progressing"); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}
