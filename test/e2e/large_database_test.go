// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// databaseSizeVariable asks for a database of so many MiB.
	databaseSizeVariable = "ETCD_OPERATOR_DATABASE_MIB"
	// blobSize is the size of a value in bytes. etcd keeps up to 15,000 entries of its log in
	// memory, so larger values would take much memory.
	blobSize = 64 << 10
	// blobWriters write side by side.
	blobWriters = 32
	// largeInterval is the pace of the writer beside it. A learner that reads a large database
	// is behind by the writes of minutes, and etcd keeps 5,000 entries for it.
	largeInterval = 50 * time.Millisecond
	// perGiB is what each step may take for each GiB.
	perGiB = 8 * time.Minute
)

// TestLargeDatabase ends a member, restarts all, defragments all and replaces the leader of a
// cluster with a large database, while a client writes. No probe ends a member. It runs only
// where a size is set.
func TestLargeDatabase(t *testing.T) {
	env.RequireLocal(t, harness.Nodes)
	mib := positive(t, databaseSizeVariable, 0)
	if mib == 0 {
		t.Skipf("set %s to the size of the database in MiB; each member takes three times as much of the disk for a while", databaseSizeVariable)
	}
	s := startFor(t, testTimeout+perGiB*time.Duration(1+mib>>10))
	c := s.create("large", 3, etcdVersion, fmt.Sprintf(`
  etcd: {quotaBackendBytes: %[1]dMi}
  pod:
    persistentVolumeClaimSpec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: %[2]dMi}}`, mib*5/4, mib*3))
	data := c.fill()
	c.timed("fill", func() { c.fillBlobs(mib) })
	w, err := c.members.Write(s.ctx(), largeInterval)
	s.must(err, "write to %s", c.name)

	c.timed("end of a member", func() { c.endMember(c.follower().Pod) })
	c.timed("restart", func() { c.operate("restart", 3) })
	c.timed("defragmentation", func() { c.operate("defrag", 3) })
	c.timed("replacement", func() { c.replace(c.leader().Pod.Name, 3) })

	c.stopped(w)
	c.holds(data)
	for name, a := range c.responses() {
		if a.DBSize < int64(mib)<<20 {
			t.Errorf("the database of %s has %d bytes, less than was written", name, a.DBSize)
		}
	}
	if killed := c.killedByProbes(); killed != "" {
		t.Errorf("probes ended members:\n%s", killed)
	}
}

// timed does something and logs how long it took.
func (c *cluster) timed(what string, do func()) {
	c.Helper()
	from := time.Now()
	do()
	c.Logf("%s: %v", what, time.Since(from).Round(100*time.Millisecond))
}

// fillBlobs writes values that do not compress.
func (c *cluster) fillBlobs(mib int) {
	c.Helper()
	client, err := c.members.Client(c.leader().Pod)
	c.must(err, "reach the leader")
	group, ctx := errgroup.WithContext(c.ctx())
	group.SetLimit(blobWriters)
	for i := range mib << 20 / blobSize {
		group.Go(func() error {
			value := make([]byte, blobSize)
			if _, err := rand.Read(value); err != nil {
				return err
			}
			_, err := client.Put(ctx, "blob/"+strconv.Itoa(i), string(value))
			return err
		})
	}
	c.must(group.Wait(), "fill %d MiB", mib)
}

// endMember kills etcd in a pod, and waits until all members serve again.
func (c *cluster) endMember(pod *corev1.Pod) {
	c.Helper()
	c.must(harness.Signal(pod, "etcd", syscall.SIGKILL), "kill the member %s", pod.Name)
	err := c.members.Pods.Await(c.ctx(), func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if p.UID == pod.UID {
				return p.Status.ContainerStatuses[0].RestartCount == 1 && harness.IsPodReady(p)
			}
		}
		return false
	})
	c.must(err, "the member %s to start again", pod.Name)
	c.settle(3)
}

// killedByProbes returns the events of the kubelets about containers that failed their probes so
// often that they were ended.
func (c *cluster) killedByProbes() string {
	c.Helper()
	killed := c.kubectl("get", "events", "--field-selector=reason=Killing", "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`)
	var ended []string
	for line := range strings.Lines(killed) {
		if strings.Contains(line, "failed") && strings.Contains(line, "probe") {
			ended = append(ended, line)
		}
	}
	return strings.Join(ended, "")
}
