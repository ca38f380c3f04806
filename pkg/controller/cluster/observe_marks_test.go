// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestPodWithoutOwner: a pod of a member stays one after something has removed its owner, as garbage collection does for
// --cascade=orphan. Else a cluster that serves would count as lost. The pod gets its owner back.
func TestPodWithoutOwner(t *testing.T) {
	t.Parallel()
	m := stopped()
	resources.MarkOwned(m.cluster, m.pod)
	s := &seen{Observed: planner.Observed{Cluster: m.cluster}}
	if !isMarked(s, m.pod) {
		t.Fatalf("a pod as it is created needs a mark: %+v", m.pod.ObjectMeta)
	}
	m.pod.OwnerReferences = nil
	if !observedPod(m.cluster, m.pod).Owned || isMarked(s, m.pod) {
		t.Error("without an owner it is no pod of the cluster, or it stays so")
	}
	if !mark(s, m.pod) || !metav1.IsControlledBy(m.pod, m.cluster) {
		t.Errorf("it does not get its owner back: %+v", m.pod.OwnerReferences)
	}
	m.pod.OwnerReferences[0].UID = "other"
	if observedPod(m.cluster, m.pod).Owned {
		t.Error("a pod of another owner counts as one of the cluster")
	}
}
