// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// maxStored is more than any object of a test has, in bytes.
const maxStored = 64 << 20

// stored reads an object as it is stored.
func (s *store) stored(key string) []byte {
	s.Helper()
	s.see()
	raw, err := objectstore.ReadAll(s.ctx(), s.objects, key, maxStored)
	s.must(err, "read %s", key)
	return raw
}

// damage writes over an object.
func (s *store) damage(key string, raw []byte) {
	s.Helper()
	if s.dir != "" { // the file keeps its inode and its owner
		s.must(os.WriteFile(filepath.Join(s.dir, key), raw, 0o600), "write %s", key)
		return
	}
	s.must(objectstore.PutBytes(s.ctx(), s.objects, key, raw, objectstore.PutOptions{Overwrite: true}), "write %s", key)
}

// from is the source of an EtcdRestore: the only backup of an EtcdBackup.
func (s *store) from(backup, key, secret, identities string) string {
	source := s.at(storeBucket+"/"+backup, secret)
	if s.secret == nil { // a volume, on which the place follows from the backup
		source = fmt.Sprintf("persistentVolumeClaim: {claimName: %s, path: %s}", storeBucket, key)
	}
	return fmt.Sprintf("  backupStorageType: %s\n  %s\n  decryption: {ageIdentitiesSecret: %s}", s.kind, source, identities)
}

// TestRestoreFromEachStore destroys a cluster with all that is known of it, and has it
// back with every key and its revision from what lies encrypted in a store of each kind.
// Before that, what was damaged in the store, or may not be read, touches nothing.
func TestRestoreFromEachStore(t *testing.T) {
	env.RequireLocal(t, harness.ObjectStore)
	t.Parallel()
	eachStore(t, func(s *store) {
		for _, name := range []string{"ours", "theirs"} {
			identity, err := age.GenerateX25519Identity()
			s.must(err, "make an identity")
			s.kubectl("create", "secret", "generic", name, "--from-literal=identities="+identity.String(), "--from-literal=recipients="+identity.Recipient().String())
		}
		c := s.create("gone", 1, etcdVersion)
		data := c.fill()
		s.apply(s.backup("last", "gone", "  compression: Zstd\n  encryption: {ageRecipientsSecret: ours}"))
		backup := s.awaitBackup(s.ctx(), "last", "success", hasSucceeded)
		key, err := (&agent.Store{Type: s.kind, Bucket: storeBucket}).KeyOf(backup.Status.URI)
		s.must(err, "read URI %s", backup.Status.URI)
		s.rejectsDamaged(c, key, c.state(data))

		s.kubectl("delete", "etcdcluster,etcdbackup", "gone", "last", "--ignore-not-found", "--wait")
		s.awaitDeleted("pods,services", "etcd_cluster=gone")
		s.apply(restoreManifest("gone", "gone", s.from("last", key, "store", "ours")+"\n  clusterTemplate:\n    spec: {size: 1, version: "+etcdVersion+"}"))
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

// rejectsDamaged requests restores of a backup that cannot be read; none of them touches the
// cluster.
func (s *store) rejectsDamaged(c *cluster, key string, was state) {
	s.Helper()
	// What a Secret is to blame for may pass: it is tried again until it is deleted.
	s.apply(restoreManifest("theirs", c.name, s.from("last", key, "store", "theirs")))
	if s.checksKeys {
		s.apply(restoreManifest("denied", c.name, s.from("last", key, "store-wrong", "ours")))
		s.retriedRestore("denied", string(agent.ClassStoreDenied))
	}
	s.retriedRestore("theirs", string(agent.ClassCredentials))
	s.kubectl("delete", "etcdrestore", "theirs", "denied", "--ignore-not-found", "--timeout=30s")
	whole := s.stored(key)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	for name, raw := range map[string][]byte{"flipped": flipped, "cut": whole[:len(whole)-len(whole)/3]} {
		s.damage(key, raw)
		s.apply(restoreManifest(name, c.name, s.from("last", key, "store", "ours")))
		s.rejectedRestore(name, string(agent.ClassCorrupt))
	}
	s.damage(key, whole)
	c.untouched(was)
}
