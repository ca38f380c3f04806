// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// copiesTo is where a cluster has its backups, which are never due in a test.
func copiesTo(path, secret string) string {
	return "\n  backup:\n    schedule: \"0 0 1 1 *\"" + strings.ReplaceAll(toS3(path, secret), "\n  ", "\n    ")
}

// awaitNoCopy waits until a restore says that it has no pre-restore backup, and why, and touches
// nothing for that.
func (c *cluster) awaitNoCopy(restore string, was state, words ...string) {
	c.Helper()
	r := c.awaitRestore(c.ctx(), restore, "a pre-restore backup that fails", func(r *v1beta2.EtcdRestore) bool {
		reason, message := progressing(r)
		return reason == "PreRestoreBackupFailed" && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(message, w) })
	})
	_, message := progressing(r)
	c.contains(message, "nothing was changed", "repair its backup location", "spec.backup", "spec.backupPolicy.suspend")
	if r.Status.Phase != v1beta2.RestorePhaseVerifying || r.Status.Succeeded || r.Status.PreRestoreBackup != nil {
		c.Errorf("the status says %+v", r.Status)
	}
	c.untouched(was)
}

// copies returns the EtcdBackups that are pre-restore backups of a restore.
func (s *scenario) copies(restore string) []v1beta2.EtcdBackup {
	s.Helper()
	list, err := env.Etcd.EtcdV1beta2().EtcdBackups(s.namespace).List(s.ctx(), metav1.ListOptions{})
	s.must(err, "list backups")
	return slices.DeleteFunc(list.Items, func(b v1beta2.EtcdBackup) bool { return b.Annotations[resources.AnnotationPreRestoreBackup] != restore })
}

// TestPreRestoreBackupFails restores in place a cluster whose data cannot be copied before: for
// its key, for its bucket, because a user deletes the copy. It goes on when there is one.
func TestPreRestoreBackupFails(t *testing.T) {
	t.Parallel()
	s := start(t)
	store := s.s3()
	c := s.create("dear", 1, etcdVersion, copiesTo("later/copies", "aws-wrong"))
	data := c.fill()
	s.apply(backupManifest("once", "  etcdCluster: {name: dear}"+toS3("backups/once", "aws")))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	kept := c.state(data)

	s.apply(restoreManifest("back", "dear", "  backup: {name: once}"))
	c.awaitNoCopy("back", kept, string(agent.ClassStoreDenied))
	c.patch(`{"spec":{"backup":{"s3":{"awsSecret":"aws"}}}}`)
	c.awaitNoCopy("back", kept, string(agent.ClassNoBucket))
	// A user deletes the copies by mistake.
	var gone v1beta2.EtcdBackup
	for _, b := range s.copies("back") {
		if b.Spec.S3.AWSSecret == "aws" {
			gone = b
		}
		s.kubectl("delete", "etcdbackup", b.Name)
	}
	s.awaitBackup(s.ctx(), gone.Name, "another backup in its place", func(b *v1beta2.EtcdBackup) bool {
		return b.UID != gone.UID && reasonOf(b) == string(agent.ClassNoBucket)
	})
	c.awaitNoCopy("back", kept, gone.Name, string(agent.ClassNoBucket))

	c.spoil(data) // which the copy must contain
	store.bucket("later")
	r := s.restored("back")
	c.settle(1)
	c.holds(data)
	if r.Status.PreRestoreBackup == nil || !strings.HasPrefix(r.Status.PreRestoreBackup.URI, "s3://later/copies/") {
		t.Fatalf("the pre-restore backup is %+v", r.Status.PreRestoreBackup)
	}
	c.undone(r, "once")
	s.noCanary()
}

// TestPreRestoreBackupSuspended: a user that suspends the copy declares that it is not wanted, and only then
// it is done without.
func TestPreRestoreBackupSuspended(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.s3()
	c := s.create("cheap", 1, etcdVersion, copiesTo("none/copies", "aws"))
	data := c.fill()
	s.apply(backupManifest("once", "  etcdCluster: {name: cheap}"+toS3("backups/once", "aws")))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	kept := c.state(data)
	s.apply(restoreManifest("back", "cheap", "  backup: {name: once}"))
	c.awaitNoCopy("back", kept, string(agent.ClassNoBucket))
	c.spoil(data)
	for _, b := range s.copies("back") {
		s.kubectl("patch", "etcdbackup", b.Name, "--type=merge", "-p", `{"spec":{"backupPolicy":{"suspend":true}}}`)
	}
	if r := s.restored("back"); r.Status.PreRestoreBackup != nil {
		t.Errorf("there is a copy: %+v", r.Status.PreRestoreBackup)
	}
	c.settle(1)
	c.holds(data)
	c.bumped()
}
