// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/migration"
)

// describe is the plan.
func (m *snapshotMigration) describe() []string {
	spec := m.plan.Cluster.Spec
	version := "the version of etcd of the source"
	if spec.Version != "" {
		version = "etcd " + spec.Version
	}
	exists := func(exists bool) string {
		if exists {
			return " It exists: the migration continues."
		}
		return ""
	}
	return []string{
		fmt.Sprintf("Migration by snapshot of %s to EtcdCluster %s.", m.source(), m.target),
		fmt.Sprintf("  1. EtcdBackup %s stores a snapshot of the source in %s.%s", m.plan.BeforeName(), location(&m.plan.Location), exists(m.before != nil)),
		fmt.Sprintf("  2. EtcdRestore %s creates EtcdCluster %s from it: members %d, %s.%s", m.plan.RestoreName(), m.plan.Name, *spec.Replicas, version, exists(m.restore != nil)),
		fmt.Sprintf("  3. EtcdBackup %s reads the source again. Its revision tells whether a write is missing.%s", m.plan.AfterName(), exists(m.after != nil)),
		"  The source is only read: its members and its data stay.",
		"  Writes that reach the source after step 1 are not in the new cluster. Stop all writers now, and keep",
		"  them stopped until the command ends: scale the applications down, or take their access to the source away.",
	}
}

// source names the running etcd.
func (m *snapshotMigration) source() string { return strings.Join(m.plan.Endpoints, ",") }

// carryOut takes the steps. Each step is skipped if an earlier run has taken it.
func (m *snapshotMigration) carryOut(ctx context.Context) error {
	var err error
	if m.before == nil {
		if m.before, err = m.createBackup(ctx, m.plan.Before, false); err != nil {
			return err
		}
	}
	if m.before, err = m.awaitBackup(ctx, "Step 1 of 3, backup of "+m.source(), m.before.Name); err != nil {
		return err
	}
	if m.restore == nil {
		if m.restore, err = m.createRestore(ctx, false); err != nil {
			return err
		}
	}
	err = m.followStep(ctx, m.o, "Step 2 of 3, restore to "+m.target.String(), func(ctx context.Context) (state, error) {
		return lookAtRestore(ctx, m.target, m.plan.RestoreName())
	})
	if err != nil {
		return m.failed(err, fmt.Sprintf("kubectl -n %s delete --ignore-not-found etcdrestore/%s etcdcluster/%s", m.plan.Namespace, m.plan.RestoreName(), m.plan.Name))
	}
	if m.after == nil {
		if m.after, err = m.createBackup(ctx, m.plan.After, false); err != nil {
			return err
		}
	}
	m.after, err = m.awaitBackup(ctx, "Step 3 of 3, check of "+m.source(), m.after.Name)
	return err
}

// awaitBackup follows a backup and returns it when it has succeeded.
func (m *snapshotMigration) awaitBackup(ctx context.Context, title, name string) (*v1beta2.EtcdBackup, error) {
	err := m.followStep(ctx, m.o, title, func(ctx context.Context) (state, error) {
		return lookAtBackup(ctx, m.target, name, m.source())
	})
	if err != nil {
		return nil, m.failed(err, fmt.Sprintf("kubectl -n %s delete etcdbackup/%s", m.plan.Namespace, name))
	}
	backup, err := m.Etcd.EtcdV1beta2().EtcdBackups(m.plan.Namespace).Get(ctx, name, metav1.GetOptions{})
	return backup, failure.With(err, m.right("get", "etcdbackups"))
}

// failed adds to the failure of a step how the migration continues.
func (m *snapshotMigration) failed(err error, remove string) error {
	if !errors.Is(err, errBackup) && !errors.Is(err, errRestore) {
		return err
	}
	return fmt.Errorf("%w\nThe source is unchanged. To take the step again, remove the cause, delete what has failed, and type the command again:\n  %s", err, remove)
}

// compare says whether the new cluster has every write of the source.
func (m *snapshotMigration) compare() error {
	first, last, err := migration.Missing(m.before, m.after)
	if err != nil {
		return failure.NotMet(fmt.Sprintf("%v\nConnect no application to %s. Name the endpoints of one etcd. To begin again:\n  %s", err, m.target, m.plan.Delete()))
	}
	if first == 0 {
		name, namespace := m.plan.Name, m.plan.Namespace
		fmt.Fprintf(m.Out, "Migration is done: %s has every write of the source, up to revision %d.\n", m.target, m.before.Status.EtcdRevision)
		fmt.Fprintf(m.Out, "Next:\n  wait for all members:      kubectl etcd check healthy %s -n %s --timeout=5m\n  connect the applications:  kubectl etcd conn %s -n %s\n",
			name, namespace, name, namespace)
		fmt.Fprintln(m.Out, "Start no writer of the source again. Keep its data until the applications have run with the new cluster.")
		return nil
	}
	return failure.NotMet(fmt.Sprintf(`revisions %d to %d of the source are missing in %s
Writes reached the source after the snapshot: a writer was not stopped, or leases expired.
EtcdBackup %s has these writes. Connect no application to the new cluster.
To begin again, stop all writers, delete the objects of the migration with the new cluster, and type the command again:
  %s`, first, last, m.target, m.plan.AfterName(), m.plan.Delete()))
}
