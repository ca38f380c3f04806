// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestRecordLost deletes and empties the record of a cluster with data. The members stay, the
// record returns with what it said, and the cluster grows as before.
func TestRecordLost(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("recorded", 1, etcdVersion)
	data, object, name := c.fill(), c.get(), "recorded-record"
	was, members := c.record(), c.ids()
	back := func(what string, done func(*corev1.ConfigMap) bool) {
		t.Helper()
		view, err := env.ConfigMap(c.ctx(), c.namespace, name)
		c.must(err, "watch ConfigMap %s", name)
		defer view.Close()
		err = view.Await(c.within(repairWithin), func(list []*corev1.ConfigMap) bool {
			return slices.ContainsFunc(list, func(cm *corev1.ConfigMap) bool {
				return resources.Owns(object, cm) && resources.ParseRecord(cm).ClusterID == was[1] && done(cm)
			})
		})
		c.must(err, "the record that was %s to return", what)
		c.settle(1)
		c.holds(data)
		for member, id := range c.ids() {
			if members[member] != id {
				t.Errorf("after the record was %s: member %s has ID %x, and was %v", what, member, id, members)
			}
		}
	}

	old, err := env.Kube.CoreV1().ConfigMaps(s.namespace).Get(s.ctx(), name, metav1.GetOptions{})
	s.must(err, "read the record")
	s.kubectl("delete", "configmap", name)
	back("deleted", func(cm *corev1.ConfigMap) bool { return cm.UID != old.UID })
	s.kubectl("patch", "configmap", name, "--type=merge", "-p", `{"data":null}`)
	back("emptied", func(*corev1.ConfigMap) bool { return true })
	s.kubectl("patch", "configmap", name, "--type=merge", "-p", `{"data":null,"metadata":{"labels":null,"annotations":null}}`)
	back("replaced by an empty object", func(cm *corev1.ConfigMap) bool { return cm.Labels[resources.LabelCluster] == "recorded" })

	s.kubectl("delete", "configmap", name)
	s.kubectl("scale", "etcdcluster/recorded", "--replicas=3")
	c.settle(3)
	c.holds(data)
	if now := c.record(); now[1] != was[1] {
		t.Errorf("the record says %q, and said %q", now, was)
	}
}
