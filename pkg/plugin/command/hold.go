// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// holdOptions are the flags of the commands that hold and release.
type holdOptions struct {
	changeOptions
	snapshot string
	latest   bool
}

func (o *holdOptions) isOneSnapshot() bool { return o.latest || o.snapshot != "" }

func (a *app) holdCommand() *cobra.Command {
	o := &holdOptions{}
	cmd := &cobra.Command{
		Use:               "hold BACKUP",
		Short:             "Keep what an EtcdBackup has stored until it is released",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeBackups,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.hold(cmd.Context(), o, args[0]) },
	}
	o.bindPlan(cmd)
	cmd.Flags().StringVar(&o.snapshot, "snapshot", "", "hold only the snapshot with this URI, as status.history of a periodic EtcdBackup lists it")
	cmd.Flags().BoolVar(&o.latest, "latest", false, "hold only the newest snapshot of a periodic EtcdBackup")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "latest")
	return cmd
}

func (a *app) releaseCommand() *cobra.Command {
	o := &holdOptions{}
	cmd := &cobra.Command{
		Use:               "release BACKUP",
		Short:             "Release an EtcdBackup and all its snapshots, or one snapshot",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeBackups,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.release(cmd.Context(), o, args[0]) },
	}
	o.bindPlan(cmd)
	cmd.Flags().StringVar(&o.snapshot, "snapshot", "", "release only the snapshot with this URI")
	return cmd
}

// readBackup reads the EtcdBackup that a command names.
func (a *app) readBackup(ctx context.Context, name string) (*connect.Clients, *v1beta2.EtcdBackup, error) {
	clients, err := a.connect()
	if err != nil {
		return nil, nil, err
	}
	backup, err := clients.Etcd.EtcdV1beta2().EtcdBackups(clients.Namespace).Get(ctx, name, metav1.GetOptions{})
	return clients, backup, failure.With(err, failure.Right{Verb: "get", Resource: "etcdbackups", Namespace: clients.Namespace})
}

func (a *app) hold(ctx context.Context, o *holdOptions, name string) error {
	clients, b, err := a.readBackup(ctx, name)
	if err != nil {
		return err
	}
	if b.Status.URI == "" {
		return failure.NotMet(fmt.Sprintf("EtcdBackup %s/%s has stored no backup yet, so there is nothing to hold", b.Namespace, b.Name))
	}
	what, plan := fmt.Sprintf("EtcdBackup %s/%s", b.Namespace, b.Name), "Its retention deletes nothing, its ttl does not count, and its deletion is rejected."
	fields, done := map[string]any{"hold": true}, b.IsHeld()
	if o.isOneSnapshot() {
		uri, err := o.snapshotOf(b)
		if err != nil {
			return err
		}
		what, plan = "snapshot "+uri, "The retention does not delete it, and the deletion of the EtcdBackup is rejected."
		fields, done = map[string]any{"heldSnapshots": append(slices.Clone(b.Spec.HeldSnapshots), uri)}, slices.Contains(b.Spec.HeldSnapshots, uri)
	}
	if done {
		fmt.Fprintf(a.Out, "%s is held: there is nothing to do.\n", what)
		return nil
	}
	return a.patchBackup(ctx, o, clients, b, fields, "Hold of "+what+": "+plan,
		fmt.Sprintf("%s is held. Release it: kubectl etcd backup release %s -n %s", what, b.Name, b.Namespace))
}

// snapshotOf returns the URI of the snapshot that the flags name.
func (o *holdOptions) snapshotOf(b *v1beta2.EtcdBackup) (string, error) {
	if !b.Spec.IsPeriodic() {
		return "", failure.Usage(fmt.Sprintf("EtcdBackup %s/%s has one snapshot, because it is not periodic; leave --snapshot and --latest out", b.Namespace, b.Name))
	}
	uri := o.snapshot
	if o.latest {
		uri = b.Status.URI
	}
	if uri != b.Status.URI && !slices.ContainsFunc(b.Status.History, func(r v1beta2.BackupRecord) bool { return r.Succeeded && r.URI == uri }) {
		return "", failure.NotMet(fmt.Sprintf("status.history of EtcdBackup %s/%s lists no snapshot %s; list them with kubectl -n %s get etcdbackup %s -o jsonpath='{.status.history[*].uri}'",
			b.Namespace, b.Name, uri, b.Namespace, b.Name))
	}
	return uri, nil
}

func (a *app) release(ctx context.Context, o *holdOptions, name string) error {
	clients, b, err := a.readBackup(ctx, name)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("EtcdBackup %s/%s", b.Namespace, b.Name)
	fields, held := map[string]any{"hold": false, "heldSnapshots": nil}, b.IsHeld() || len(b.Spec.HeldSnapshots) > 0
	if o.isOneSnapshot() {
		what, held = "snapshot "+o.snapshot, slices.Contains(b.Spec.HeldSnapshots, o.snapshot)
		left := slices.DeleteFunc(slices.Clone(b.Spec.HeldSnapshots), func(uri string) bool { return uri == o.snapshot })
		fields = map[string]any{"heldSnapshots": left}
	}
	if !held {
		fmt.Fprintf(a.Out, "%s is not held: there is nothing to do.\n", what)
		return nil
	}
	plan := "Its ttl counts again, and it can be deleted. What it has stored stays in the store."
	if b.Spec.IsPeriodic() {
		plan = "With the next backup the retention may delete what is released."
	}
	return a.patchBackup(ctx, o, clients, b, fields, "Release of "+what+": "+plan, what+" is released.")
}

// patchBackup changes fields of the spec of the EtcdBackup that was read, and of no other state of it: a list replaces
// the list that another request may have changed.
func (a *app) patchBackup(ctx context.Context, o *holdOptions, clients *connect.Clients, b *v1beta2.EtcdBackup, fields map[string]any, plan, outcome string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": b.UID, "resourceVersion": b.ResourceVersion}, "spec": fields})
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	send := func(ctx context.Context, dryRun bool) error {
		_, err := clients.Etcd.EtcdV1beta2().EtcdBackups(b.Namespace).Patch(ctx, b.Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dry(dryRun)})
		return failure.With(err, failure.Right{Verb: "patch", Resource: "etcdbackups", Namespace: b.Namespace})
	}
	return a.carryOut(ctx, &o.changeOptions, nil, change{
		title: plan,
		plan:  func(ctx context.Context) ([]string, error) { return []string{plan}, send(ctx, true) },
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			return nil, outcome, send(ctx, false)
		},
	})
}

// completeBackups completes the name of an EtcdBackup as the first argument.
func (a *app) completeBackups(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.names(cmd.Context(), typed, nil, func(ctx context.Context) ([]string, error) {
		clients, err := a.connect()
		if err != nil {
			return nil, err
		}
		list, err := clients.Etcd.EtcdV1beta2().EtcdBackups(clients.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, nil
	})
}
