// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// cordons is a cache that knows cordoned nodes, and nothing else.
type cordons struct {
	Cache
	nodes map[string]bool
}

func (c cordons) IsCordoned(node string) bool { return c.nodes[node] }

// TestCordonedNodesAreObserved: a pod is on a cordoned node if the cache says so, unless
// Kubernetes would place its successor there, too.
func TestCordonedNodesAreObserved(t *testing.T) {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"}, Spec: v1beta2.ClusterSpec{Version: "3.6.11"}}
	everywhere := corev1.Toleration{Operator: corev1.TolerationOpExists}
	onCordoned := corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		node        string
		tolerations []corev1.Toleration
		want        bool
	}{
		"cordoned":                     {"drained", nil, true},
		"not cordoned":                 {"other", nil, false},
		"no node yet":                  {"", nil, false},
		"tolerates everything":         {"drained", []corev1.Toleration{everywhere}, false},
		"tolerates cordoned nodes":     {"drained", []corev1.Toleration{onCordoned}, false},
		"tolerates unresponsive nodes": {"drained", []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := resources.Pod(c, resources.MemberPod{Name: "c-a"})
			pod.Spec.NodeName = test.node
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, test.tolerations...)
			r := &run{Reconciler: &Reconciler{Config: Config{Cache: cordons{nodes: map[string]bool{"drained": true}}}}, seen: &seen{Observed: planner.Observed{Cluster: c}}}
			sortObjects(r, []*corev1.Pod{pod}, nil, nil)
			if got := r.seen.Pods[0].Cordoned; got != test.want {
				t.Errorf("cordoned is %t", got)
			}
		})
	}
}

// heard records events.
type heard []string

func (h *heard) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	*h = append(*h, reason+" "+fmt.Sprintf(format, args...))
}

// TestReplacementOnCordonedNodeIsAnnounced: one event names the node.
func TestReplacementOnCordonedNodeIsAnnounced(t *testing.T) {
	var events heard
	r := &run{Reconciler: &Reconciler{Config: Config{Recorder: &events}}, seen: &seen{Observed: planner.Observed{
		Cluster: &v1beta2.EtcdCluster{}, Pods: []planner.Pod{{Name: "c-a", Owned: true, Node: "drained", Cordoned: true}},
	}}}
	announceReplaced(r, "c-a")
	if len(events) != 1 || !strings.HasPrefix(events[0], EventMemberReplaced) || !strings.Contains(events[0], "node drained is cordoned") {
		t.Errorf("the events are %q", events)
	}
}
