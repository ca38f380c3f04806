// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// stay returns after how many seconds Kubernetes deletes a pod from a node with these taints;
// math.MaxInt64 if never. It computes them as the taint eviction controller does: the first
// toleration that matches a taint counts, and the shortest of these.
func stay(pod *corev1.Pod, taints ...string) int64 {
	shortest := int64(math.MaxInt64)
	for _, key := range taints {
		seconds := int64(0)
		for i := range pod.Spec.Tolerations {
			if t := &pod.Spec.Tolerations[i]; v1beta2.MatchesNodeLoss(t, key) {
				seconds = ptr.Deref(t.TolerationSeconds, math.MaxInt64)
				break
			}
		}
		shortest = min(shortest, seconds)
	}
	return shortest
}

// TestPodsStayOnLostNodes: whatever a user tolerates, Kubernetes never deletes the pod of a member
// because its node does not respond, and other tolerations reach the pod.
func TestPodsStayOnLostNodes(t *testing.T) {
	t.Parallel()
	const unreachable, notReady = corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady
	limited := func(key string, seconds int64) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(seconds)}
	}
	unlimited := corev1.Toleration{Key: unreachable, Operator: corev1.TolerationOpExists}
	dedicated := corev1.Toleration{Key: "dedicated", Value: "etcd", Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		users []corev1.Toleration
		want  int // tolerations of the pod
	}{
		"none":                       {nil, 2},
		"both with a limit":          {[]corev1.Toleration{limited(unreachable, 5), limited(notReady, 5)}, 2},
		"no time at all":             {[]corev1.Toleration{limited(unreachable, 0), limited(notReady, -1)}, 2},
		"one with a limit":           {[]corev1.Toleration{limited(notReady, 5)}, 2},
		"all taints with a limit":    {[]corev1.Toleration{limited("", 5)}, 2},
		"all taints without a limit": {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, 1},
		"a limit, then none":         {[]corev1.Toleration{limited(unreachable, 5), unlimited}, 2},
		"no limit, then one":         {[]corev1.Toleration{unlimited, limited(unreachable, 5)}, 2},
		"no value, with a limit":     {[]corev1.Toleration{{Key: unreachable, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](5)}}, 2},
		"only when it is scheduled":  {[]corev1.Toleration{{Key: unreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}, 3},
		"a number":                   {[]corev1.Toleration{{Key: unreachable, Operator: corev1.TolerationOpGt, Effect: corev1.TaintEffectNoExecute}}, 3},
		"another taint":              {[]corev1.Toleration{dedicated}, 3},
		"another taint with a limit": {[]corev1.Toleration{limited("dedicated", 5)}, 3},
		"another taint, and a limit": {[]corev1.Toleration{dedicated, limited("", 5)}, 3},
	} {
		c := newCluster(func(c *v1beta2.EtcdCluster) { c.Spec.Pod = &v1beta2.PodPolicy{Tolerations: tc.users} })
		for _, m := range []MemberPod{{Name: first, Bootstrap: true}, {Name: third}, {Name: third, Prepared: true, Image: "launcher"}} {
			pod := Pod(c, m)
			if got := min(stay(pod, unreachable), stay(pod, notReady), stay(pod, unreachable, notReady)); got != math.MaxInt64 {
				t.Errorf("%s: Kubernetes deletes the pod after %d s on a node that does not respond: %+v", name, got, pod.Spec.Tolerations)
			}
			if got := len(pod.Spec.Tolerations); got != tc.want {
				t.Errorf("%s: %d tolerations, want %d: %+v", name, got, tc.want, pod.Spec.Tolerations)
			}
		}
		if len(c.Spec.Pod.Tolerations) != len(tc.users) {
			t.Errorf("%s: the cluster was changed", name)
		}
	}
}

// TestLimitedStaysAreNoTemplate: a pod that was made with a limit has another template, so that it is
// made again, and another limit changes no pod.
func TestLimitedStaysAreNoTemplate(t *testing.T) {
	t.Parallel()
	with := func(list ...corev1.Toleration) *v1beta2.EtcdCluster {
		return newCluster(func(c *v1beta2.EtcdCluster) { c.Spec.Pod = &v1beta2.PodPolicy{Tolerations: list} })
	}
	limited := func(seconds int64) corev1.Toleration {
		return corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}
	}
	dedicated := corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists}
	if a, b := TemplateHash(with(limited(5), dedicated)), TemplateHash(with(dedicated)); a != b {
		t.Errorf("%s with a limit, %s without", a, b)
	}
	if a, b := TemplateHash(with(limited(5))), TemplateHash(with(limited(50))); a != b {
		t.Errorf("%s with 5 s, %s with 50 s", a, b)
	}
	// What an earlier release noted on a pod with this limit, which the pod has.
	const earlier = "dbc590cb65271c9cdd9b"
	if TemplateHash(with(limited(5))) == earlier {
		t.Error("a pod that an earlier release made with a limit is not made again")
	}
}
