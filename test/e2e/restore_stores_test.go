// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
)

// TestRestoreFromEachStore destroys a cluster with all that is known of it, and has it
// back with every key and its revision from what lies in a store of each kind.
func TestRestoreFromEachStore(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *store) {
		c := s.create("gone", 1, etcdVersion)
		data := c.fill()
		s.apply(s.backup("last", "gone", "  compression: Zstd"))
		backup := s.awaitBackup(s.ctx(), "last", "success", succeeded)
		s.kubectl("delete", "etcdcluster,etcdbackup", "gone", "last", "--ignore-not-found", "--wait")
		s.awaitGone("pods,services", "etcd_cluster=gone")

		source := s.at(storeBucket+"/last", "store")
		if s.secret == nil { // a volume, on which the place follows from the backup
			key, err := (&agent.Store{Type: s.kind, Bucket: storeBucket}).KeyOf(backup.Status.URI)
			s.must(err, "read URI %s", backup.Status.URI)
			source = fmt.Sprintf("persistentVolumeClaim: {claimName: %s, path: %s}", storeBucket, key)
		}
		s.apply(restoreManifest("gone", "gone", fmt.Sprintf("  backupStorageType: %s\n  %s\n  clusterTemplate:\n    spec: {size: 1, version: %s}",
			s.kind, source, etcdVersion)))
		if r := s.restored("gone"); r.Status.Revision != backup.Status.EtcdRevision {
			s.Errorf("revision %d was restored, %d was stored", r.Status.Revision, backup.Status.EtcdRevision)
		}
		c.settle(1)
		c.holds(data)
		if got := c.read("x").Header.Revision; got != backup.Status.EtcdRevision {
			s.Errorf("the new cluster has revision %d, not %d", got, backup.Status.EtcdRevision)
		}
		s.noCanary()
	})
}
