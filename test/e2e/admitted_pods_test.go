// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// otherRegistry is where the policy of TestPodsChangedByPolicy takes images from.
const otherRegistry = "mirror.example.com"

// rewritePolicy does to the pods of one namespace what policies of platform teams do:
// images come from another registry, and there is one more container, label and toleration.
const rewritePolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]
  matchConditions:
  - {name: unchanged, expression: "object.spec.containers.exists(c, c.image.startsWith('quay.io/coreos/'))"}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "replace", path: "/spec/containers/0/image", value: object.spec.containers[0].image.replace("quay.io/", "%[2]s/")}] +
        (request.operation != "CREATE" ? [] : [
        JSONPatch{op: "add", path: "/metadata/labels/policy.example.com~1checked", value: "true"},
        JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{key: "pool", operator: "Exists"}},
        JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "proxy", image: "docker.io/library/busybox:1.35", command: ["sleep", "86400"],
        securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false, capabilities: Object.spec.containers.securityContext.capabilities{drop: ["ALL"]}}}}])
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
`

// mirrored gives every node the images of etcd under the name of the other registry.
func (s *scenario) mirrored(versions ...string) {
	s.Helper()
	nodes, err := env.ReadyNodes(s.ctx())
	s.must(err, "list the nodes")
	state, err := env.LocalTool(s.ctx(), "state-dir")
	s.must(err, "find the nodes")
	for _, node := range nodes {
		for _, v := range versions {
			_, err := env.LocalTool(s.ctx(), "node", "shell", node, "ctr", "--namespace", "k8s.io", "--address", filepath.Join(state, "run", node, "containerd.sock"),
				"images", "tag", "--force", "quay.io/coreos/etcd:v"+v, otherRegistry+"/coreos/etcd:v"+v)
			s.must(err, "tag an image on node %s", node)
		}
	}
}

// TestPodsChangedByPolicy: pods that an admission policy has changed come up and stay, and their members are
// upgraded with their data. What was requested is compared, not what the policy made of it.
func TestPodsChangedByPolicy(t *testing.T) {
	env.RequireLocal(t, harness.NodeImages)
	t.Parallel()
	s := start(t)
	s.mirrored(previousVersion, etcdVersion)
	s.mutatePods(s.probePod(map[string]string{"probe": "true"}), func(p *corev1.Pod) bool {
		return strings.HasPrefix(p.Spec.Containers[0].Image, otherRegistry)
	}, rewritePolicy, otherRegistry)
	c := s.create("changed", 3, previousVersion, withVolumes)
	data := c.fill()
	before := c.ids()
	if image := c.kubectl("get", "pods", "-l", "etcd_cluster=changed", "-o", "jsonpath={.items[0].spec.containers[0].image}"); image != otherRegistry+"/coreos/etcd:v"+previousVersion {
		t.Fatalf("the policy did not change the image: %s", image)
	}
	w := c.write()
	s.kubectl(patchVersion("changed", etcdVersion)...)
	c.await(s.ctx(), "the new version", func(object *clusterObject) bool {
		return isSettled(object, 3) && object.Status.CurrentVersion == etcdVersion && object.Status.TargetVersion == ""
	})
	c.stopped(w)
	c.holds(data)
	// Their pods are made again, because the policy may look at new pods only. They have their data on PVCs.
	if after := c.ids(); !maps.Equal(before, after) {
		t.Errorf("the members are %v before the upgrade, and %v after it", before, after)
	}
	s.kubectl("scale", "etcd/changed", "--replicas=4")
	c.settle(4)
	c.holds(data)
}

// TestQuotaDelaysMembersOnly: a quota that leaves no room for a member changes nothing in
// etcd. The status and one event say which quota, and the cluster is complete soon after
// it was raised.
func TestQuotaDelaysMembersOnly(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.kubectl("create", "quota", "full", "--hard=pods=2")
	c := s.cluster("tight")
	s.apply(manifest("tight", 3, etcdVersion))
	rejected := func(object *clusterObject) bool {
		b := object.Status.BlockedBy
		return b != nil && b.Reason == v1beta2.ReasonPodRejected && strings.Contains(b.Message, "exceeded quota: full") && len(object.Status.Members.Ready) == 2
	}
	c.await(s.within(time.Minute), "two members, and the quota", rejected)
	data := c.fill()
	members := c.ids()
	// Long enough for an eager controller to add hundreds of members.
	quiet, cancel := context.WithTimeout(s.ctx(), 12*time.Second)
	defer cancel()
	err := wait.PollUntilContextCancel(quiet, 500*time.Millisecond, true, func(context.Context) (bool, error) {
		object := c.get()
		if !rejected(object) || len(object.Status.MemberStatuses) != 2 {
			return false, fmt.Errorf("the status became\n%s", describe(object))
		}
		return false, nil
	})
	if !wait.Interrupted(err) {
		t.Fatal(err)
	}
	reasons := c.reasons()
	count := func(reason string) int {
		return len(slices.DeleteFunc(slices.Clone(reasons), func(r string) bool { return r != reason }))
	}
	if n := count("MemberAdded"); n != 1 {
		t.Errorf("%d members were added while there was room for one: %v", n, reasons)
	}
	if n := count("PodRejected"); n != 1 {
		t.Errorf("%d events about the quota: %v", n, reasons)
	}
	for name, id := range c.ids() {
		if members[name] != id {
			t.Errorf("member %s changed from %x to %x", name, members[name], id)
		}
	}
	s.kubectl("patch", "quota", "full", "--type=merge", "-p", `{"spec":{"hard":{"pods":"3"}}}`)
	from := time.Now()
	c.settle(3)
	t.Logf("complete %v after the quota was raised", time.Since(from).Round(10*time.Millisecond))
	c.holds(data)

	// A member that is lost while nothing may be made stays in etcd's list.
	s.kubectl("patch", "quota", "full", "--type=merge", "-p", `{"spec":{"hard":{"pods":"2"}}}`)
	target := c.follower()
	s.kubectl("delete", "pod", target.Pod.Name, "--force", "--grace-period=0")
	c.await(s.within(time.Minute), "the status to report the quota again", rejected)
	if n := len(c.get().Status.MemberStatuses); n != 3 {
		t.Errorf("etcd has %d members while the pod of one is rejected", n)
	}
	s.kubectl("patch", "quota", "full", "--type=merge", "-p", `{"spec":{"hard":{"pods":"3"}}}`)
	c.await(s.ctx(), "another member in its place", func(object *clusterObject) bool {
		return isSettled(object, 3) && !slices.Contains(object.Status.Members.Ready, target.Pod.Name)
	})
	c.holds(data)
}

// overcommitPolicy binds every pod to one node, past the scheduler, and has it ask for
// more than the node has: the kubelet does not admit such a pod, and it fails.
const overcommitPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{nodeName: "%[2]s", containers: object.spec.containers.map(c, Object.spec.containers{name: c.name,
        resources: Object.spec.containers.resources{requests: {"cpu": "1000"}}})}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
`

// TestFailedPodsBackOff: pods that a node does not admit are recreated less and less
// often, the status says why they fail, and the cluster comes up soon after that ended.
func TestFailedPodsBackOff(t *testing.T) {
	t.Parallel()
	s := start(t)
	nodes, err := env.ReadyNodes(s.ctx())
	s.must(err, "list the nodes")
	end := s.mutatePods(s.probePod(nil), func(p *corev1.Pod) bool { return p.Spec.NodeName == nodes[0] }, overcommitPolicy, nodes[0])
	made := map[types.UID]bool{}
	var mu sync.Mutex
	watch, err := env.Kube.CoreV1().Pods(s.namespace).Watch(s.ctx(), metav1.ListOptions{})
	s.must(err, "watch the pods")
	t.Cleanup(watch.Stop)
	go func() {
		for e := range watch.ResultChan() {
			if pod, is := e.Object.(*corev1.Pod); is {
				mu.Lock()
				made[pod.UID] = true
				mu.Unlock()
			}
		}
	}()
	s.apply(manifest("fat", 3, etcdVersion))
	c := s.cluster("fat")
	c.await(s.ctx(), "the status to report the failures", func(object *clusterObject) bool {
		b := object.Status.BlockedBy
		return b != nil && b.Reason == "PodFailed" && strings.Contains(b.Message, "OutOfcpu")
	})
	// Long enough for an eager controller to make hundreds of pods.
	select {
	case <-time.After(15 * time.Second):
	case <-s.ctx().Done():
	}
	mu.Lock()
	n := len(made)
	mu.Unlock()
	t.Logf("%d pods were made", n)
	if n > 40 {
		t.Errorf("%d pods were made while none could run", n)
	}
	end()
	from := time.Now()
	c.settle(3)
	t.Logf("complete %v after the policy ended", time.Since(from).Round(10*time.Millisecond))
	if n := strings.Count(strings.Join(c.reasons(), " "), "PodFailed"); n > 3 {
		t.Errorf("%d events about pods that fail", n)
	}
}
