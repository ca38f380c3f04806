// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestTLSVersionWalk brings clusters with certificates through three minor versions. The variable with
// which members accept each other without a reverse DNS lookup has another name from 3.6 on, and 3.7 does not
// know the old one. After each step a member joins again, so that its peers verify it.
func TestTLSVersionWalk(t *testing.T) {
	harness.RequireNightly(t)
	for name, more := range map[string]string{"with volumes": withVolumes, "without volumes": ""} {
		for tls, spec := range map[string]string{"static": withStaticTLS, "auto": withAutoTLS} {
			t.Run(tls+" "+name, func(t *testing.T) {
				t.Parallel()
				s := start(t)
				c := s.cluster("secure")
				if tls == "static" {
					s.pki("secure", true).putAll()
					c.secure(operatorSecret, "etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt")
				} else {
					c.secure("secure-client-tls", "tls.crt", "tls.key", "ca.crt")
				}
				s.apply(manifest("secure", 3, "3.5.35", spec, more, "\n  etcd: {snapshotCount: 1000}"))
				c.settle(3)
				c.walk()
			})
		}
	}
}

// walk upgrades a cluster of three at 3.5 to 3.6 and to 3.7. Each member keeps its ID, and after each
// step one that starts again comes back.
func (c *cluster) walk() {
	c.Helper()
	data, ids := c.fill(), c.ids()
	c.skipsPeerNames("ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION")
	for _, to := range []string{etcdVersion, "3.7.3"} {
		c.kubectl(patchVersion(c.name, to)...)
		c.await(c.ctx(), "version "+to, func(o *clusterObject) bool {
			return isSettled(o, 3) && o.Status.CurrentVersion == to && o.Status.TargetVersion == ""
		})
		c.skipsPeerNames("ETCD_PEER_SKIP_CLIENT_SAN_VERIFICATION")
		for name, id := range ids {
			if now := c.ids(); now[name] != id {
				c.Errorf("at %s the members are %x, not %x", to, now, ids)
			}
		}
		old := c.follower().Pod
		c.kubectl("delete", "pod", old.Name)
		c.must(c.members.AwaitVoters(c.ctx(), 3, old.UID), "a member to come back at %s", to)
		c.settle(3)
		c.holds(data)
		ids = c.ids()
	}
}

// skipsPeerNames makes sure that etcd in each pod has used exactly this variable for it.
func (c *cluster) skipsPeerNames(variable string) {
	c.Helper()
	const used, suffix = "recognized and used environment variable", "PEER_SKIP_CLIENT_SAN_VERIFICATION"
	for _, p := range c.members.Live() {
		var names []string
		for line := range strings.Lines(c.kubectl("logs", p.Name, "-c", "etcd")) {
			if _, rest, found := strings.Cut(line, `"variable-name":"`); found && strings.Contains(line, used) {
				if name, _, _ := strings.Cut(rest, `"`); strings.HasSuffix(name, suffix) {
					names = append(names, name)
				}
			}
		}
		if !slices.Equal(names, []string{variable}) {
			c.Errorf("etcd in pod %s has used %v, not %s", p.Name, names, variable)
		}
	}
}

// TestImageSetByHand sets the image of one pod to one that does not exist. The requested one comes back.
func TestImageSetByHand(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("edited", 3, etcdVersion, withVolumes)
	data, ids := c.fill(), c.ids()
	pod := c.follower().Pod
	s.kubectl("set", "image", "pod/"+pod.Name, "etcd=registry.invalid/etcd:v0")
	c.imageComesBack(pod)
	c.settle(3)
	if now := c.ids(); now[pod.Name] != ids[pod.Name] {
		t.Errorf("the members are %x, not %x", now, ids)
	}
	c.holds(data)
}

// imageComesBack waits until no pod but ready ones with the image of before are there.
func (c *cluster) imageComesBack(old *corev1.Pod) {
	c.Helper()
	c.must(c.members.Pods.Await(c.ctx(), func(pods []*corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			same := p.UID == old.UID && p.Status.ContainerStatuses[0].ContainerID == old.Status.ContainerStatuses[0].ContainerID
			return same || resources.EtcdImage(p) != resources.EtcdImage(old) || !harness.IsPodReady(p)
		})
	}), "wait for image %s", resources.EtcdImage(old))
}

// TestVersionSetByHand sets the image of one pod to another version, with volumes and without. The status
// reports it, and the declared version comes back.
func TestVersionSetByHand(t *testing.T) {
	harness.RequireNightly(t)
	for name, more := range map[string]string{"with volumes": withVolumes, "without volumes": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			c := s.create("edited", 3, etcdVersion, more)
			data := c.fill()
			pod := c.follower().Pod
			s.kubectl("set", "image", "pod/"+pod.Name, "etcd="+strings.ReplaceAll(resources.EtcdImage(pod), etcdVersion, previousVersion))
			c.await(s.ctx(), "the status to report another version", func(o *clusterObject) bool {
				return !isSettled(o, 3) && strings.Contains(condition(o, v1beta2.ClusterConditionUpgrading).Message, previousVersion)
			})
			c.await(s.ctx(), "the declared version", func(o *clusterObject) bool {
				return isSettled(o, 3) && o.Status.CurrentVersion == etcdVersion
			})
			c.holds(data)
		})
	}
}

// TestDeclarationOutOfReach declares for the only member what lets etcd run and reject every client, and
// takes it back.
func TestDeclarationOutOfReach(t *testing.T) {
	harness.RequireNightly(t)
	t.Parallel()
	s := start(t)
	c := s.cluster("deaf")
	c.secure("deaf-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("deaf", 1, etcdVersion, withAutoTLS, withVolumes))
	c.settle(1)
	data := c.fill()
	c.patch(`{"spec":{"etcd":{"extraArgs":["--client-cert-allowed-hostname=nobody.example"]}}}`)
	c.await(c.within(2*time.Minute), "the status to report that etcd does not respond", func(o *clusterObject) bool {
		return is(o, v1beta2.ClusterConditionAvailable, corev1.ConditionUnknown) || is(o, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse)
	})
	c.patch(`{"spec":{"etcd":{"extraArgs":null}}}`)
	taken := time.Now()
	c.settle(1)
	t.Logf("the only member is back %v after the declaration was taken back", time.Since(taken).Round(time.Second))
	c.holds(data)
}
