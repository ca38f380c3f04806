// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/migration"
)

// joinSource are the flags of a migration by joining.
type joinSource struct {
	endpoints []string
	tlsSecret string
	file      string
	version   string
	size      int32
}

func (a *app) migrateJoinCommand() *cobra.Command {
	o, source := &migrateOptions{}, &joinSource{}
	cmd := &cobra.Command{
		Use:   "join NAME",
		Short: "Let the members of a new EtcdCluster join a running etcd, without a time without writes",
		Long: `Creates an EtcdCluster NAME whose members join an etcd that another program runs, one by one. The
running etcd serves on. Its members stay until kubectl etcd migrate finish NAME. Members of both must
reach each other at their peer URLs. Without --yes and without a terminal the command prints the
plan and changes nothing.`,
		Example: `  kubectl etcd migrate join prod --endpoints=http://etcd-0.etcd:2379,http://etcd-1.etcd:2379,http://etcd-2.etcd:2379 --version 3.5.21
  kubectl etcd migrate join prod --endpoints=https://etcd.old.svc:2379 --tls-secret etcd-client -f prod.yaml`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.migrateJoin(cmd.Context(), o, source, args[0]) },
	}
	o.bind(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&source.endpoints, "endpoints", nil, "client URLs of the members of the running etcd, which the controller reaches")
	flags.StringVar(&source.tlsSecret, "tls-secret", "", "Secret with the client certificate for https endpoints: tls.crt, tls.key, ca.crt")
	flags.StringVarP(&source.file, "filename", "f", "", "manifest with an EtcdCluster, whose spec the new cluster gets")
	flags.StringVar(&source.version, "version", "", "version of etcd of the new members, of the minor version of the running etcd; by default that of the manifest, or the recommended one")
	flags.Int32Var(&source.size, "size", 0, "members of the new cluster; by default those of the manifest, or 3")
	return cmd
}

// joinMigration is a migration by joining.
type joinMigration struct {
	*app
	*target

	o      *migrateOptions
	plan   migration.Join
	exists bool
}

func (a *app) migrateJoin(ctx context.Context, o *migrateOptions, source *joinSource, name string) error {
	m, err := a.newJoinMigration(o, source, name)
	if err != nil {
		return err
	}
	if err := m.find(ctx); err != nil {
		return err
	}
	if !m.exists {
		if err := m.create(ctx, true); err != nil {
			return err
		}
	}
	for _, line := range m.plan.Describe(m.cluster.Spec.Version, m.exists) {
		fmt.Fprintln(a.Out, line)
	}
	confirmed, err := a.confirmMigration(ctx, o, "Type the name of the new cluster to carry the plan out: ", name)
	if err != nil || !confirmed {
		return err
	}
	if !m.exists {
		if err := m.create(ctx, false); err != nil {
			return err
		}
	}
	err = m.followStep(ctx, o, "Members of "+m.target.String()+" join", m.readThen(lookAtJoin))
	if errors.Is(err, errCannotJoin) {
		return failure.NotMet(err.Error() + "\nThe running etcd is unchanged. Correct the EtcdCluster, and type the command again; or begin again:\n  " + m.plan.Delete())
	}
	if err != nil {
		return err
	}
	namespace := m.plan.Namespace
	fmt.Fprintf(a.Out, "Next:\n  connect the applications:  kubectl etcd conn %s -n %s\n  then remove the old members:  kubectl etcd migrate finish %s -n %s\n",
		name, namespace, name, namespace)
	fmt.Fprintln(a.Out, "Do not stop the old members before: they are part of the quorum.")
	return nil
}

// newJoinMigration reads the flags and the manifest.
func (a *app) newJoinMigration(o *migrateOptions, source *joinSource, name string) (*joinMigration, error) {
	if len(source.endpoints) == 0 {
		return nil, failure.Usage("--endpoints is missing; name the client URLs of the members of the running etcd, such as http://etcd-0.etcd:2379")
	}
	cluster := &v1beta2.EtcdCluster{}
	if source.file != "" {
		file, err := os.Open(filepath.Clean(source.file))
		if err != nil {
			return nil, failure.Usage(fmt.Sprintf("--filename: %v", err))
		}
		defer func() { _ = file.Close() }() // it was opened for reading
		manifest, err := migration.ReadManifest(file)
		if err != nil {
			return nil, failure.Usage(fmt.Sprintf("--filename %s: %v", source.file, err))
		}
		if manifest.Backup != nil || manifest.Cluster == nil {
			return nil, failure.Usage(fmt.Sprintf("--filename %s: it must hold one EtcdCluster and nothing else; a migration by joining makes no backup", source.file))
		}
		cluster = manifest.Cluster
	}
	clients, err := a.connect()
	if err != nil {
		return nil, err
	}
	m := &joinMigration{app: a, o: o, plan: migration.Join{
		Namespace: clients.Namespace, Name: name, Endpoints: source.endpoints, TLSSecret: source.tlsSecret,
		Size: source.size, Version: source.version, Manifest: cluster,
	}}
	m.target = &target{Clients: clients, cluster: m.plan.Cluster()}
	return m, nil
}

// find reads the cluster that an earlier run of the command has created.
func (m *joinMigration) find(ctx context.Context) error {
	found, err := m.Etcd.EtcdV1beta2().EtcdClusters(m.plan.Namespace).Get(ctx, m.plan.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !failure.IsMissingAPI(err):
		return nil
	case err != nil:
		return failure.With(err, m.right("get", "etcdclusters"))
	}
	if err := m.plan.Continues(found); err != nil {
		return failure.NotMet(err.Error())
	}
	m.cluster, m.exists = found, true
	return nil
}

func (m *joinMigration) create(ctx context.Context, dryRun bool) error {
	created, err := m.Etcd.EtcdV1beta2().EtcdClusters(m.plan.Namespace).Create(ctx, m.plan.Cluster(), metav1.CreateOptions{DryRun: dry(dryRun)})
	if err != nil {
		return failure.With(err, m.right("create", "etcdclusters"))
	}
	m.cluster = created
	return nil
}

func (a *app) migrateFinishCommand() *cobra.Command {
	o := &migrateOptions{}
	cmd := &cobra.Command{
		Use:   "finish NAME",
		Short: "Remove the old members of the etcd that an EtcdCluster has joined",
		Long: `Requests the removal of the old members from etcd, after all members of the EtcdCluster vote. The
leadership moves to a member of the EtcdCluster first. Clients that are still connected to old
members lose them. Without --yes and without a terminal the command prints the plan and changes
nothing.`,
		Example:           `  kubectl etcd migrate finish prod`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.migrateFinish(cmd.Context(), o, args[0]) },
	}
	o.bind(cmd)
	return cmd
}

func (a *app) migrateFinish(ctx context.Context, o *migrateOptions, name string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	existing := t.cluster.Existing()
	if existing == nil {
		return failure.NotMet(fmt.Sprintf("%s has joined no running etcd: it has no spec.bootstrap.existing", t))
	}
	old := migration.OldMembers(t.cluster)
	if len(old) == 0 && t.cluster.Status.Phase == v1beta2.ClusterPhaseRunning && len(t.cluster.Status.MemberStatuses) > 0 {
		fmt.Fprintf(a.Out, "No old member of %s is left. Remove spec.bootstrap from the manifest of the cluster.\n", t)
		return nil
	}
	if now, err := lookAtJoin(t); err != nil || !now.done {
		if existing.OldMembers != v1beta2.OldMembersRemove || err != nil {
			text := now.step.Text
			if err != nil {
				text = err.Error()
			}
			return failure.NotMet(fmt.Sprintf("not all members of %s vote yet: %s. Wait for them: kubectl etcd status %s -n %s", t, text, name, t.cluster.Namespace))
		}
	}
	fields := map[string]any{"bootstrap": map[string]any{"existing": map[string]any{"oldMembers": v1beta2.OldMembersRemove}}}
	if err := t.patchSpec(ctx, fields, true); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "Removal of the old members of %s: %s.\n", t, strings.Join(old, ", "))
	for _, line := range []string{
		"  1. The leadership moves to a member of the cluster. Writes may fail for a moment.",
		"  2. The old members are removed from etcd, one by one. etcd in them ends.",
		"  Clients that are connected to an old member lose it. Connect all applications to the new cluster before.",
		"  The old members cannot come back: their data stays on their disks, and misses later writes.",
	} {
		fmt.Fprintln(a.Out, line)
	}
	confirmed, err := a.confirmMigration(ctx, o, "Type the name of the cluster to carry the plan out: ", name)
	if err != nil || !confirmed {
		return err
	}
	if err := t.patchSpec(ctx, fields, false); err != nil {
		return err
	}
	if err := a.followStep(ctx, o, "Removal of the old members of "+t.String(), t.readThen(lookAtFinish)); err != nil {
		return err
	}
	fmt.Fprintln(a.Out, "Next: delete what ran the old members, such as their StatefulSet, and remove spec.bootstrap from the manifest of the cluster.")
	return nil
}
