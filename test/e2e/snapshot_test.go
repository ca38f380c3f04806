// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// snapshot types kubectl get --raw …/proxy/snapshot > file.
func (c *cluster) snapshot(query string, args ...string) (file string, err error) {
	c.Helper()
	out, err := os.CreateTemp(c.TempDir(), "*.db")
	c.must(err, "make a file")
	defer out.Close()
	cmd := env.KubectlCommand(c.ctx(), harness.Command{Args: append([]string{"get", "--raw", c.raw("proxy/snapshot") + query}, args...)})
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &said
	if err := cmd.Run(); err != nil {
		return out.Name(), errors.Join(err, errors.New(said.String()))
	}
	return out.Name(), nil
}

// hasSnapshot fails the test unless a file holds exactly this data.
func (s *scenario) hasSnapshot(file string, data harness.Data) *harness.Snapshot {
	s.Helper()
	found, err := env.ReadSnapshot(s.ctx(), file)
	s.must(err, "read %s", filepath.Base(file))
	if !maps.Equal(found.Keys, data) {
		s.Errorf("%s has %d keys, or other values, of %d that were written", filepath.Base(file), len(found.Keys), len(data))
	}
	return found
}

// TestSnapshotThroughTheAPI copies the database of a cluster with TLS to this machine:
// from a follower, from the member that is named, and from the last one that is left.
func TestSnapshotThroughTheAPI(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster("copied")
	c.secure("copied-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("copied", 3, etcdVersion, withAutoTLS))
	c.settle(3)
	data := c.fill()
	file, err := c.snapshot("")
	s.must(err, "copy")
	found := s.hasSnapshot(file, data)

	leader := c.leader().Pod.Name
	file, err = c.snapshot("?member=" + leader)
	s.must(err, "copy from %s", leader)
	if again := s.hasSnapshot(file, data); again.Revision < found.Revision {
		t.Errorf("revision %d came after %d", again.Revision, found.Revision)
	}
	if _, err := c.snapshot("?member=copied-nobody"); err == nil {
		t.Error("a member that does not exist was copied")
	} else {
		s.contains(err.Error(), "not found")
	}

	// Every key is in it, so it takes the right to create beside that to get.
	s.kubectl("create", "role", "looks", "--verb=get", "--resource=etcdclusters.etcd.database.coreos.com/proxy")
	s.kubectl("create", "rolebinding", "looks", "--role=looks", "--user=looker")
	s.awaitRight("looker", "get", "proxy")
	if _, err := c.snapshot("", "--as=looker"); err == nil {
		t.Error("the right to get was enough")
	} else {
		s.contains(err.Error(), "verb create on etcdclusters/proxy")
	}
	// Another user: that the first one may not is remembered for some seconds.
	s.kubectl("create", "rolebinding", "copies", "--clusterrole=etcd-operator:snapshot", "--user=copier")
	s.awaitRight("copier", "create", "proxy")
	file, err = c.snapshot("", "--as=copier")
	s.must(err, "copy as a user that may")
	s.hasSnapshot(file, data)

	s.stopTwo(c)
	file, err = c.snapshot("")
	s.must(err, "copy from the last member")
	s.hasSnapshot(file, data)
}

// awaitRight waits until Kubernetes heeds a role binding: it reads them from a cache.
func (s *scenario) awaitRight(user, verb, subresource string) {
	s.Helper()
	args := []string{"-n", s.namespace, "auth", "can-i", verb, "etcdclusters." + etcd.GroupName, "--subresource=" + subresource, "--as=" + user}
	err := wait.PollUntilContextCancel(s.within(time.Minute), 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		out, err := env.Kubectl(ctx, harness.Command{Args: args})
		return err == nil && strings.TrimSpace(out) == "yes", nil
	})
	s.must(err, "wait for the right of %s to %s etcdclusters/%s", user, verb, subresource)
}
