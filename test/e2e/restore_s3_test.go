// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// object reads a stored object.
func (s *s3Server) object(bucket, key string) []byte {
	s.Helper()
	response, err := s.client.GetObject(s.ctx(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	s.must(err, "read %s", key)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	s.must(err, "read %s", key)
	return raw
}

// put writes an object, and replaces an existing one.
func (s *s3Server) put(bucket, key string, raw []byte) {
	s.Helper()
	_, err := s.client.PutObject(s.ctx(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(raw)})
	s.must(err, "write %s", key)
}

// fromS3 is a source as old manifests give it.
func fromS3(path, secret string) string {
	return "  backupStorageType: S3\n  s3: {path: " + path + ", awsSecret: " + secret + ", endpoint: \"http://store:7070\", forcePathStyle: true}"
}

// TestRestoreFromS3 restores from a real server as old manifests do: into a cluster that
// is there, and, after that was deleted, into none. What was damaged in the store, or may
// not be read, touches nothing.
func TestRestoreFromS3(t *testing.T) {
	env.RequireLocal(t, harness.ObjectStore)
	t.Parallel()
	s := start(t)
	c := s.create("cloudy", 1, etcdVersion)
	data := c.fill()
	store := s.s3()
	store.bucket("bucket")
	s.apply(backupManifest("old", "  etcdEndpoints: [\"http://cloudy-client:2379\"]"+toS3("bucket/etcd.backup", "aws")))
	backup := s.awaitBackup(s.ctx(), "old", "success", hasSucceeded)
	whole := store.object("bucket", "etcd.backup")
	kept := c.state(data)

	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	store.put("bucket", "flipped", flipped)
	store.put("bucket", "flipped.manifest.json", bytes.ReplaceAll(store.object("bucket", "etcd.backup.manifest.json"), []byte(`"etcd.backup"`), []byte(`"flipped"`)))
	store.put("bucket", "naked", flipped)
	store.put("bucket", "cut", whole[:len(whole)-len(whole)/3])
	for name, test := range map[string]struct{ path, secret, reason string }{
		"flipped": {"bucket/flipped", "aws", string(agent.ClassCorrupt)},
		"naked":   {"bucket/naked", "aws", string(agent.ClassCorrupt)},
		"cut":     {"bucket/cut", "aws", string(agent.ClassCorrupt)},
		"none":    {"bucket/none", "aws", string(agent.ClassNotFound)},
	} {
		s.apply(restoreManifest(name, "cloudy", fromS3(test.path, test.secret)))
		s.rejectedRestore(name, test.reason)
	}
	s.apply(restoreManifest("denied", "cloudy", fromS3("bucket/etcd.backup", "aws-wrong")))
	s.retriedRestore("denied", string(agent.ClassStoreDenied))
	s.kubectl("delete", "etcdrestore", "denied", "--timeout=30s")
	c.untouched(kept)

	c.spoil(data)
	s.apply(restoreManifest("cloudy", "cloudy", fromS3("bucket/etcd.backup", "aws")))
	if r := s.restored("cloudy"); r.Status.Revision != backup.Status.EtcdRevision {
		t.Errorf("revision %d was restored, %d was stored", r.Status.Revision, backup.Status.EtcdRevision)
	}
	c.settle(1)
	c.holds(data)
	c.bumped()

	// A file that a user has put there, without a manifest.
	store.put("bucket", "bare", whole)
	s.apply(restoreManifest("bare", "bare", fromS3("bucket/bare", "aws")+"\n  clusterTemplate:\n    spec: {size: 1, version: "+etcdVersion+"}"))
	bare := s.cluster("bare")
	if r := s.restored("bare"); r.Status.Revision != backup.Status.EtcdRevision {
		t.Errorf("revision %d was restored, %d was stored", r.Status.Revision, backup.Status.EtcdRevision)
	}
	bare.settle(1)
	bare.holds(data)
	s.kubectl("delete", "etcdcluster,etcdrestore", "bare", "--wait")

	s.kubectl("delete", "etcdcluster,etcdrestore", "cloudy", "--wait")
	s.awaitDeleted("pods,services", "etcd_cluster=cloudy")
	s.apply(restoreManifest("cloudy", "cloudy", fromS3("bucket/etcd.backup", "aws")))
	s.restored("cloudy")
	c.settle(3)
	c.holds(data)
	if got := c.read("x").Header.Revision; got != backup.Status.EtcdRevision {
		t.Errorf("the new cluster has revision %d, not %d", got, backup.Status.EtcdRevision)
	}
	s.noCanary()
}
