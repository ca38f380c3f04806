// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// TestHeldBackups holds a snapshot of a series beyond its retention, and releases it. An EtcdBackup that has outlived its
// ttl stays while it is the last proven one.
func TestHeldBackups(t *testing.T) {
	t.Parallel()
	s := startFor(t, 5*time.Minute)
	p := s.buildPlugin()
	s.volume()
	s.create("dear", 1, etcdVersion)
	s.apply(backupManifest("expiring", "  etcdCluster: {name: dear}\n  ttl: 1m"+toVolume))
	s.awaitBackup(s.ctx(), "expiring", "being kept as the last proven one", func(b *v1beta2.EtcdBackup) bool {
		kept := slices.IndexFunc(b.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Kept" })
		return kept >= 0 && b.Status.Conditions[kept].Reason == "LastProven"
	})
	s.apply(backupManifest("series", "  etcdCluster: {name: dear}\n  backupPolicy: {backupIntervalInSecond: 3, maxBackups: 1}"+toVolume))
	s.awaitBackup(s.ctx(), "series", "its first backup", func(b *v1beta2.EtcdBackup) bool { return len(goodOnes(b)) > 0 })
	s.kubectl("annotate", "etcdbackup", "expiring", "touched=yes") // otherwise it is looked at again after ten minutes at most
	s.poll("the deletion of the EtcdBackup that has outlived its ttl", func(ctx context.Context) bool {
		_, err := env.Etcd.EtcdV1beta2().EtcdBackups(s.namespace).Get(ctx, "expiring", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})

	p.run(failure.CodeDone, "backup", "hold", "series", "--latest", "--yes")
	b := s.awaitBackup(s.ctx(), "series", "a hold", func(b *v1beta2.EtcdBackup) bool { return len(b.Spec.HeldSnapshots) == 1 })
	held := b.Spec.HeldSnapshots[0]
	has := func(b *v1beta2.EtcdBackup) bool {
		return slices.ContainsFunc(goodOnes(b), func(r v1beta2.BackupRecord) bool { return r.URI == held })
	}
	later := map[string]bool{}
	s.awaitBackup(s.ctx(), "series", "three later backups", func(b *v1beta2.EtcdBackup) bool {
		if b.Status.URI != held {
			later[b.Status.URI] = true
		}
		if !has(b) {
			t.Fatalf("the held snapshot %s is no longer in the history: %+v", held, b.Status.History)
		}
		return len(later) >= 3
	})
	s.must(s.checkStored(held), "the held snapshot")
	s.contains(s.rejected("", "delete", "etcdbackup", "series"), "held", "kubectl etcd backup release series")

	p.run(failure.CodeDone, "backup", "release", "series", "--snapshot", held, "--yes")
	s.awaitBackup(s.ctx(), "series", "the deletion of what was released", func(b *v1beta2.EtcdBackup) bool { return !has(b) })
	if err := s.checkStored(held); err == nil {
		t.Errorf("the store still has %s", held)
	}
	s.kubectl("delete", "etcdbackup", "series")
}
