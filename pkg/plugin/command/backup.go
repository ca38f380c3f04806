// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
)

// errBackup means that a backup failed.
var errBackup = errors.New("the backup failed")

func (a *app) backupCommand() *cobra.Command {
	o := &changeOptions{}
	cmd := &cobra.Command{
		Use:               "backup NAME",
		Short:             "Back a cluster up to the backup location in its spec.backup; hold and release backups",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.backup(cmd.Context(), o, args[0]) },
	}
	o.bind(cmd)
	cmd.AddCommand(a.holdCommand(), a.releaseCommand())
	return cmd
}

func (a *app) backup(ctx context.Context, o *changeOptions, name string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	if o.wait && !o.dryRun {
		if err := a.awaitStart(ctx, o, t); err != nil {
			return err
		}
	}
	send := func(ctx context.Context, dryRun bool) (*v1beta2.EtcdBackup, error) {
		body := &v1beta2.EtcdBackup{ObjectMeta: t.meta()}
		response, err := t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).Backup(ctx, name, body, metav1.CreateOptions{DryRun: dry(dryRun)})
		return response, failure.With(err, t.right("create", "etcdclusters/backup"))
	}
	return a.carryOut(ctx, o, t, change{
		title: "Backup of " + t.String(),
		plan: func(ctx context.Context) ([]string, error) {
			planned, err := send(ctx, true)
			if err != nil {
				return nil, err
			}
			return []string{fmt.Sprintf("Backup of %s to %s. No member stops serving.", t, location(&planned.Spec))}, nil
		},
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			created, err := send(ctx, false)
			if err != nil {
				return nil, "", err
			}
			fmt.Fprintf(a.Out, "EtcdBackup %s was created.\n", created.Name)
			return func(ctx context.Context) (state, error) { return lookAtBackup(ctx, t, created.Name, t.String()) }, "", nil
		},
	})
}

// awaitStart waits until a member of a cluster that is being created serves. Before that there is
// nothing to back up.
func (a *app) awaitStart(ctx context.Context, o *changeOptions, t *target) error {
	if hasStarted(&t.cluster.Status) {
		return nil
	}
	return a.follow(ctx, a.line("Start of "+t.String()), o.timeout, func(ctx context.Context) (state, error) {
		cluster, err := t.read(ctx)
		if err != nil {
			return state{}, err
		}
		if hasStarted(&cluster.Status) {
			return state{done: true, outcome: t.String() + " has started."}, nil
		}
		return state{step: progress.Step{Text: "no member serves yet"}}, nil
	})
}

// hasStarted is true once a member has served.
func hasStarted(status *v1beta2.ClusterStatus) bool {
	return status.Phase != "" && status.Phase != v1beta2.ClusterPhaseCreating
}

// location says where a backup goes.
func location(spec *v1beta2.BackupSpec) string {
	switch {
	case spec.PersistentVolumeClaim != nil:
		return strings.TrimSuffix("PVC "+spec.PersistentVolumeClaim.ClaimName+"/"+spec.PersistentVolumeClaim.Path, "/")
	case spec.S3 != nil:
		return "S3 " + spec.S3.Path
	case spec.ABS != nil:
		return "ABS " + spec.ABS.Path
	case spec.GCS != nil:
		return "GCS " + spec.GCS.Path
	case spec.OSS != nil:
		return "OSS " + spec.OSS.Path
	default:
		return string(spec.StorageType)
	}
}

// lookAtBackup reads how far an EtcdBackup is; of names what is backed up.
func lookAtBackup(ctx context.Context, t *target, name, of string) (state, error) {
	backup, err := t.Etcd.EtcdV1beta2().EtcdBackups(t.cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return state{}, failure.With(err, t.right("get", "etcdbackups"))
	}
	status := &backup.Status
	switch status.Phase {
	case v1beta2.BackupPhaseFailed:
		return state{}, fmt.Errorf("%w: %s; see kubectl -n %s describe etcdbackup %s", errBackup, status.Reason, backup.Namespace, name)
	case v1beta2.BackupPhaseSucceeded:
		outcome := fmt.Sprintf("Backup %s of %s is done: revision %d, %s stored as %s at %s", name, of, status.EtcdRevision, progress.Size(status.SnapshotSize), progress.Size(status.StoredSize), status.URI)
		if status.SHA256 != "" {
			outcome += ", SHA-256 " + status.SHA256
		}
		if status.Verified {
			outcome += ", verified by " + string(status.VerifiedBy)
		}
		return state{done: true, outcome: outcome + "."}, nil
	default:
		step := transfer(string(status.Phase), status.Progress)
		if status.Attempts > 1 {
			step.Text += fmt.Sprintf(", attempt %d: %s", status.Attempts, status.Reason)
		}
		return state{step: step}, nil
	}
}

// transfer is the step of a transfer of data.
func transfer(phase string, p *v1beta2.TransferProgress) progress.Step {
	step := progress.Step{Text: strings.ToLower(phase), Bytes: true}
	if p != nil {
		step.Done, step.Total = p.Bytes, p.TotalBytes
	}
	return step
}
