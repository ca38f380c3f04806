// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	layout "github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// s3Server is a store that speaks S3, with a client of its own and the secrets that
// manifests of etcd-operator name: "aws", and "aws-wrong" with another key.
type s3Server struct {
	*store

	client *awss3.Client
}

// s3 runs the server.
func (s *scenario) s3() *s3Server {
	s.Helper()
	kind := s3Kind()
	server := &s3Server{store: s.store(kind)}
	for name, key := range map[string]string{"aws": canary, "aws-wrong": canary + "-wrong"} {
		entries := kind.secret(key)
		s.kubectl("create", "secret", "generic", name, "--from-literal=credentials="+entries["credentials"], "--from-literal=config="+entries["config"])
	}
	server.client = s3Client(server.endpoint, server.transport)
	return server
}

func (s *s3Server) bucket(name string) {
	s.Helper()
	s.newBucket(name)
}

// toS3 is a destination as old manifests give it.
func toS3(path, secret string) string {
	return fmt.Sprintf("\n  storageType: S3\n  s3: {path: %s, awsSecret: %s, endpoint: \"http://store:7070\", forcePathStyle: true}", path, secret)
}

// backups counts what is visible as a backup.
func (s *store) backups(prefix string) int {
	s.Helper()
	n := 0
	for _, k := range s.list() {
		if layout.IsManifest(k) && strings.HasPrefix(k, prefix) {
			n++
		}
	}
	return n
}

func reasonOf(b *v1beta2.EtcdBackup) string {
	if c := meta.FindStatusCondition(b.Status.Conditions, "Succeeded"); c != nil && b.Status.Phase == v1beta2.BackupPhaseFailed {
		return c.Reason
	}
	return ""
}

// TestBackupToS3 makes backups by endpoints as old manifests do, and periodic ones.
func TestBackupToS3(t *testing.T) {
	env.RequireLocal(t, harness.ObjectStore)
	t.Parallel()
	s := start(t).s3()
	s.bucket("older")
	c := s.create("cloudy", 3, etcdVersion)
	data := c.fill()

	s.apply(backupManifest("old", "  etcdEndpoints: [\"http://cloudy-client:2379\"]"+toS3("backups/etcd.backup", "aws")))
	s.apply(backupManifest("other", "  etcdEndpoints: [\"http://cloudy-client:2379\"]"+toS3("older/etcd.backup", "aws")))
	s.apply(backupManifest("series", "  etcdCluster: {name: cloudy}\n  backupPolicy: {backupIntervalInSecond: 4, maxBackups: 2}"+toS3("backups/series", "aws")))

	old := s.awaitBackup(s.ctx(), "old", "success", hasSucceeded)
	if old.Status.URI != "s3://backups/etcd.backup" {
		t.Errorf("the old manifest stores at %s", old.Status.URI)
	}
	s.hasSnapshot(s.fetch(old.Status.URI), data)
	s.awaitBackup(s.ctx(), "other", "success", hasSucceeded)
	if object, err := s.client.HeadObject(s.ctx(), &awss3.HeadObjectInput{Bucket: aws.String("older"), Key: aws.String("etcd.backup")}); err != nil || *object.ContentLength == 0 {
		t.Errorf("the other bucket has %+v, %v", object, err)
	}
	s.awaitBackup(s.ctx(), "series", "four scheduled times", func(b *v1beta2.EtcdBackup) bool {
		return len(goodOnes(b)) == 2 && b.Status.LastScheduleTime.Sub(b.CreationTimestamp.Time).Seconds() >= 16
	})
	s.kubectl("patch", "etcdbackup", "series", "--type=merge", "-p", `{"spec":{"backupPolicy":{"suspend":true}}}`)
	series := s.awaitBackup(s.ctx(), "series", "rest", func(b *v1beta2.EtcdBackup) bool {
		return b.Status.ObservedGeneration == b.Generation && hasSucceeded(b)
	})
	if n := s.backups("series/"); n != 2 || len(goodOnes(series)) != 2 {
		t.Errorf("%d backups are stored, %d in the history; 2 must be kept: %v", n, len(goodOnes(series)), s.list())
	}
	for _, r := range goodOnes(series) {
		s.hasSnapshot(s.fetch(r.URI), data)
	}
	s.noCanary()
}
