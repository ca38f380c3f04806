// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// progressing returns what a restore waits for.
func progressing(r *v1beta2.EtcdRestore) (reason, message string) {
	if c := meta.FindStatusCondition(r.Status.Conditions, "Progressing"); c != nil {
		return c.Reason, c.Message
	}
	return "", ""
}

// TestRestoreNeedsDiskSpace restores a database that a pod may not hold twice, which the manifest
// of the backup tells before anything is done. The cluster is declared larger, and has it
// back.
func TestRestoreNeedsDiskSpace(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	limited := func(limit string) string {
		return "\n  pod: {resources: {requests: {ephemeral-storage: 1Mi}, limits: {ephemeral-storage: " + limit + "}}}"
	}
	c := s.create("snug", 1, etcdVersion, limited("256Mi"))
	data := c.fill()
	client, err := c.members.Client(c.leader().Pod)
	s.must(err, "ask the leader")
	ballast := strings.Repeat("x", 1<<20)
	for i := range 48 {
		_, err := client.Put(s.ctx(), fmt.Sprintf("ballast/%02d", i), ballast)
		s.must(err, "write ballast")
	}
	s.apply(backupManifest("once", "  etcdCluster: {name: snug}"+toVolume))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	kept := c.state(data)
	s.apply(restoreManifest("back", "snug", "  backup: {name: once}"))
	s.rejectedRestore("back", "Unsupported", "there is room for", "ephemeral-storage")
	c.untouched(kept)

	c.spoil(data)
	s.apply(manifest("snug", 1, etcdVersion, limited("512Mi")))
	c.rolled(1, func(p *corev1.Pod) bool {
		return p.Spec.Containers[0].Resources.Limits.StorageEphemeral().String() == "512Mi"
	})
	s.apply(restoreManifest("again", "snug", "  backup: {name: once}"))
	s.restored("again")
	c.settle(1)
	c.holds(data)
	c.bumped()
}

// TestRecoveryMemberEvicted has the recovery member evicted for what it takes of the disk of
// its node, by a limit that is not known before. The cluster serves on, the status says what
// happens, and it goes on when the limit is removed.
func TestRecoveryMemberEvicted(t *testing.T) {
	t.Parallel()
	s := start(t)
	store := s.s3()
	c := s.create("crowded", 1, etcdVersion, withVolumes)
	data := c.fill()
	s.apply(backupManifest("once", "  etcdCluster: {name: crowded}"+toS3("backups/once", "aws")))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	kept := c.state(data)
	// The new member gets no volume yet.
	s.kubectl("create", "quota", "full", "--hard=persistentvolumeclaims=1")
	s.apply(restoreManifest("back", "crowded", "  backup: {name: once}"))
	s.awaitRestore(s.ctx(), "back", "the status to report the quota for the new member", func(r *v1beta2.EtcdRestore) bool {
		return reportsRejection(r.Status.Conditions) && r.Status.Phase == v1beta2.RestorePhaseRestoring
	})
	// A pod that is created without a limit of its own gets this limit from now on, and the
	// kubelet checks it every few seconds. The new member must not serve before: it gets its
	// volume, but not the backup.
	s.apply(`apiVersion: v1
kind: LimitRange
metadata: {name: small}
spec: {limits: [{type: Container, default: {ephemeral-storage: 1Ki}, defaultRequest: {ephemeral-storage: 1Ki}}]}
`)
	store.setReachable(false)
	s.kubectl("delete", "quota", "full")
	r := s.awaitRestore(s.ctx(), "back", "the eviction", func(r *v1beta2.EtcdRestore) bool {
		_, message := progressing(r)
		return strings.Contains(message, "ephemeral")
	})
	if r.Status.Succeeded || r.Status.Phase != v1beta2.RestorePhaseRestoring || r.Status.CompletionTime != nil {
		t.Errorf("the status says %+v", r.Status)
	}
	r = s.awaitRestore(s.ctx(), "back", "the way out", func(r *v1beta2.EtcdRestore) bool {
		reason, message := progressing(r)
		return reason == "RecoveryMemberLost" && strings.Contains(message, "Evicted") && strings.Contains(message, "nothing was changed")
	})
	_, message := progressing(r)
	s.contains(message, "spec.pod", "delete EtcdRestore back")
	c.serves(kept)

	s.kubectl("delete", "limitrange", "small")
	s.kubectl("delete", "pods", "-l", "etcd_recovery=crowded", "--wait=false")
	store.setReachable(true)
	s.restored("back")
	c.settle(1)
	c.holds(data)
	c.bumped()
}

// setReachable puts the store into its Service, or takes it out.
func (s *store) setReachable(yes bool) {
	s.Helper()
	name := "store"
	if !yes {
		name = "no-such-store"
	}
	s.kubectl("patch", "service", "store", "--type=merge", "-p", `{"spec":{"selector":{"name":"`+name+`"}}}`)
}
