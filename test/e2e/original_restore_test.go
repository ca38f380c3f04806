// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// looks calls look at once and then every interval, at most count times more, as the test suite of the original
// etcd-operator does, and returns how long that took. A look that returns true ends it.
func (s *scenario) looks(what string, interval time.Duration, count int, look func() bool) time.Duration {
	s.Helper()
	from := time.Now()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := 0; !look(); i++ {
		if i == count {
			s.Fatalf("%s: not after %d looks, one every %s", what, count+1, interval)
		}
		<-tick.C
	}
	return time.Since(from).Round(10 * time.Millisecond)
}

// originalEndpoints returns the client URLs of the running pods, as that suite gives them to a backup.
func (c *cluster) originalEndpoints() string {
	c.Helper()
	list, err := env.Kube.CoreV1().Pods(c.namespace).List(c.ctx(), metav1.ListOptions{LabelSelector: "etcd_cluster=" + c.name})
	c.must(err, "list the pods")
	var urls []string
	for i := range list.Items {
		if p := &list.Items[i]; p.Status.Phase == corev1.PodRunning {
			urls = append(urls, fmt.Sprintf("%q", "https://"+net.JoinHostPort(p.Name+"."+c.name+"."+c.namespace+".svc", "2379")))
		}
	}
	return strings.Join(urls, ", ")
}

// originalSize waits for ready members within the limits of that suite.
func (c *cluster) originalSize(size int) time.Duration {
	c.Helper()
	return c.looks(fmt.Sprint(size, " ready members"), 10*time.Second, 6, func() bool {
		return len(c.get().Status.Members.Ready) == size
	})
}

// originalRounds is how often the test below backs up and restores.
const originalRounds = 10

// TestOriginalBackupAndRestore keeps the limits of TestBackupAndRestore in the test suite of the original etcd-operator:
// a backup to S3 within 4 s, and a restore in place within 10 s. That suite looks at the restore at
// once and after 10 s, and a reason in its status is a failure. Then this test deletes the cluster and restores it within
// the same limit. No other end-to-end test runs meanwhile, because the limits are times.
func TestOriginalBackupAndRestore(t *testing.T) {
	harness.RequireNightly(t)
	env.RequireLocal(t, harness.ObjectStore)
	for round := range originalRounds {
		t.Run(fmt.Sprint(round), originalBackupAndRestore)
	}
}

func originalBackupAndRestore(t *testing.T) {
	s := start(t)
	store := s.s3()
	store.bucket("bucket")
	s.pki("twice", true).putAll()
	c := s.cluster("twice")
	c.secure(operatorSecret, "etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt")
	s.apply(manifest("twice", 3, etcdVersion, withStaticTLS))
	c.originalSize(3)

	s.apply(backupManifest("twice", "  etcdEndpoints: ["+c.originalEndpoints()+"]\n  clientTLSSecret: "+operatorSecret+toS3("bucket/etcd.backup", "aws")))
	backups := env.Etcd.EtcdV1beta2().EtcdBackups(s.namespace)
	took := s.looks("the backup", time.Second, 4, func() bool {
		b, err := backups.Get(s.ctx(), "twice", metav1.GetOptions{})
		s.must(err, "read the backup")
		if b.Status.Reason != "" || b.Status.Succeeded && (b.Status.EtcdVersion != etcdVersion || b.Status.EtcdRevision != 1) {
			s.Fatalf("the backup: %+v", b.Status)
		}
		return b.Status.Succeeded
	})
	t.Logf("the backup: seen after %v", took)

	c.originalRestore("in place of a living cluster", "bucket/etcd.backup")
	c.originalSize(3)
	s.kubectl("delete", "etcdcluster,etcdrestore", "twice", "--wait")
	s.awaitDeleted("pods,services", "etcd_cluster=twice")
	c.originalRestore("after the deletion of the cluster", "bucket/etcd.backup")
}

// originalRestore restores the cluster within the limits of that suite.
func (c *cluster) originalRestore(what, path string) {
	c.Helper()
	from := time.Now()
	c.apply(restoreManifest(c.name, c.name, fromS3(path, "aws")))
	restores := env.Etcd.EtcdV1beta2().EtcdRestores(c.namespace)
	c.looks("the restore "+what, 10*time.Second, 1, func() bool {
		r, err := restores.Get(c.ctx(), c.name, metav1.GetOptions{})
		c.must(err, "read the restore")
		if !r.Status.Succeeded && r.Status.Reason != "" {
			c.Fatalf("the restore %s: %s", what, r.Status.Reason)
		}
		if !r.Status.Succeeded && time.Since(from) > 9*time.Second {
			c.Logf("the restore %s, after %v: %+v", what, time.Since(from).Round(10*time.Millisecond), r.Status)
		}
		return r.Status.Succeeded
	})
	r, err := restores.Get(c.ctx(), c.name, metav1.GetOptions{})
	c.must(err, "read the restore")
	if r.Status.Phase != v1beta2.RestorePhaseSucceeded || r.Status.CompletionTime == nil {
		c.Errorf("the restore %s: %+v", what, r.Status)
		return
	}
	c.Logf("the restore %s: succeeded after %v", what, r.Status.CompletionTime.Sub(r.CreationTimestamp.Time))
}
