// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	backupName  = "once"
	restoreName = "again"
	// restoredCluster is the cluster that a restore makes, of restoredSize members.
	restoredCluster = "restored"
	restoredSize    = 3
)

const backupVolume = `apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: backups
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 256Mi}}
`

const backupObject = `apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata:
  name: ` + backupName + `
spec:
  etcdCluster: {name: ` + clusterName + `}
  verify: Restore
  storageType: PersistentVolumeClaim
  persistentVolumeClaim: {claimName: backups}
`

var restoreObject = fmt.Sprintf(`apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata:
  name: %s
spec:
  etcdCluster: {name: %s}
  backup: {name: %s}
  clusterTemplate:
    spec: {size: %d, version: %q}
`, restoreName, restoredCluster, backupName, restoredSize, etcdVersion)

// makeVolume makes the PVC that backups go to.
func makeVolume(ctx context.Context, s *stage) error {
	return s.kubectl(ctx, backupVolume, "apply", "-f", "-")
}

func backUp(ctx context.Context, s *stage) error {
	return s.kubectl(ctx, backupObject, "apply", "-f", "-")
}

// backedUp waits until the backup has succeeded. An attempt that failed is repeated.
func backedUp(ctx context.Context, s *stage) error {
	return s.eventually(ctx, "back up", func(ctx context.Context) error {
		b, err := s.env.Etcd.EtcdV1beta2().EtcdBackups(s.namespace).Get(ctx, backupName, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case b.Status.Phase == v1beta2.BackupPhaseFailed && meta.IsStatusConditionFalse(b.Status.Conditions, "Progressing"):
			return fmt.Errorf("the backup failed: %s: %w", b.Status.Reason, errFinal)
		case b.Status.Phase != v1beta2.BackupPhaseSucceeded:
			return fmt.Errorf("the backup has phase %q: %s", b.Status.Phase, b.Status.Reason)
		case !b.Status.Verified:
			return fmt.Errorf("the backup succeeded and is not verified: %w", errFinal)
		}
		return nil
	})
}

func prepareRestore(ctx context.Context, s *stage) error {
	for _, step := range []func(context.Context, *stage) error{makeVolume, backUp, backedUp} {
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func restore(ctx context.Context, s *stage) error {
	return s.kubectl(ctx, restoreObject, "apply", "-f", "-")
}

// restored waits until the new cluster runs, and checks that each of its members has the data
// that was written before the backup.
func restored(ctx context.Context, s *stage) (err error) {
	err = s.eventually(ctx, "restore", func(ctx context.Context) error {
		r, err := s.env.Etcd.EtcdV1beta2().EtcdRestores(s.namespace).Get(ctx, restoreName, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case r.Status.Phase == v1beta2.RestorePhaseFailed:
			return fmt.Errorf("the restore failed: %s: %w", r.Status.Reason, errFinal)
		case r.Status.Phase != v1beta2.RestorePhaseSucceeded:
			return fmt.Errorf("the restore has phase %q: %s", r.Status.Phase, r.Status.Reason)
		}
		return nil
	})
	if err != nil {
		return err
	}
	members, err := s.env.Members(ctx, s.namespace, restoredCluster)
	if err != nil {
		return fmt.Errorf("follow the members of the restored cluster: %w", err)
	}
	defer func() { err = errors.Join(err, members.Close()) }()
	err = s.await(ctx, restoredCluster, "its members", func(object *v1beta2.EtcdCluster) bool { return harness.IsSettled(object, restoredSize) })
	if err != nil {
		return err
	}
	if err := members.AwaitVoters(ctx, restoredSize); err != nil {
		return err
	}
	return s.eventually(ctx, "read the data of the restored cluster", func(ctx context.Context) error { return members.Holds(ctx, s.data) })
}
