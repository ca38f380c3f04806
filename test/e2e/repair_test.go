// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// repairWithin is how soon what a user broke must be right again.
const repairWithin = 20 * time.Second

// TestServicesRepaired deletes and edits what belongs to the controller.
func TestServicesRepaired(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("served", 1, etcdVersion)
	object := c.get()
	data := c.fill()

	s.kubectl("patch", "service", "served-client", "--type=merge", "-p", `{"spec":{"selector":{"app":"something-else"}}}`)
	c.awaitService("served-client", func(svc *corev1.Service) bool { return svc.Spec.Selector["app"] == "etcd" })
	s.kubectl("patch", "service", "served", "--type=merge", "-p", `{"spec":{"publishNotReadyAddresses":false},"metadata":{"labels":{"mine":"kept"}}}`)
	c.awaitService("served", func(svc *corev1.Service) bool {
		return svc.Spec.PublishNotReadyAddresses && svc.Labels["mine"] == "kept"
	})

	for _, name := range []string{"served-client", "served"} {
		old, err := env.Kube.CoreV1().Services(s.namespace).Get(s.ctx(), name, metav1.GetOptions{})
		s.must(err, "read service %s", name)
		s.kubectl("delete", "service", name)
		c.awaitService(name, func(svc *corev1.Service) bool {
			return svc.UID != old.UID && resources.Owns(object, svc)
		})
	}
	s.kubectl("delete", "pdb", "served")
	s.kubectl("wait", "--for=create", "pdb/served", "--timeout=20s")

	// After all this nothing may start the cluster a second time.
	c.settle(1)
	c.holds(data)
	s.kubectl("scale", "etcdcluster/served", "--replicas=3")
	c.settle(3)
	c.holds(data)
}

func (c *cluster) awaitService(name string, done func(*corev1.Service) bool) {
	c.Helper()
	view, err := env.Service(c.ctx(), c.namespace, name)
	c.must(err, "watch service %s", name)
	defer view.Close()
	err = view.Await(c.within(repairWithin), func(list []*corev1.Service) bool { return slices.ContainsFunc(list, done) })
	c.must(err, "service %s to be repaired", name)
}

// TestEvictions asks for the eviction of one voter, which is granted, and of a
// second one while the first is missing, which is not.
func TestEvictions(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("drained", 3, etcdVersion)
	data := c.fill()
	c.awaitDisruptionsAllowed(1)

	// Paused, so that the first one stays away.
	s.kubectl("patch", "etcd", "drained", "--type=merge", "-p", `{"spec":{"paused":true}}`)
	c.await(s.ctx(), "the pause", func(object *clusterObject) bool { return object.Status.ControlPaused })
	pods := c.members.Live()
	s.must(evict(s, pods[0]), "evict the first voter")
	s.must(c.members.Pods.Await(s.ctx(), func(now []*corev1.Pod) bool { return len(now) == 2 }), "the first voter to go")
	for _, p := range pods[1:] {
		if err := evict(s, p); !apierrors.IsTooManyRequests(err) {
			t.Errorf("the response to the eviction of a second voter is %v, want too many requests", err)
		}
	}
	s.kubectl("patch", "etcd", "drained", "--type=merge", "-p", `{"spec":{"paused":false}}`)
	c.settle(3)
	c.holds(data)
}

func evict(s *scenario, pod *corev1.Pod) error {
	return env.Kube.CoreV1().Pods(s.namespace).EvictV1(s.ctx(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
	})
}

func (c *cluster) awaitDisruptionsAllowed(n int32) {
	c.Helper()
	view, err := env.Budget(c.ctx(), c.namespace, c.name)
	c.must(err, "watch the budget")
	defer view.Close()
	err = view.Await(c.within(repairWithin), func(list []*policyv1.PodDisruptionBudget) bool {
		return len(list) == 1 && list[0].Status.DisruptionsAllowed == n
	})
	c.must(err, "the budget to allow %d evictions", n)
}
