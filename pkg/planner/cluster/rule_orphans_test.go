// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func retain(o *Observed) {
	persist(o)
	o.Cluster.Spec.Pod.PersistentVolumeClaimRetentionPolicy = &v1beta2.PersistentVolumeClaimRetentionPolicy{WhenScaled: v1beta2.PVCRetain}
}

func TestRuleOrphans(t *testing.T) {
	going := func(o *Observed) {
		o.Pods[len(o.Pods)-1].Terminating = true
	}
	checkDecisions(t, []decision{
		{"a pod of no member", 3, "a b c", edits(pod("x", true)), "orphans: DeletePod x"},
		{"with its volume", 3, "a:claim b:claim c:claim", edits(pod("x", true), withPVC("x", true)), "orphans: DeletePod x, DeletePVC x"},
		{"a volume that is kept", 3, "a:claim b:claim c:claim", edits(withPVC("x", true), retain), "orphans: ReleasePVC x"},
		{"one that goes already", 3, "a b c", edits(pod("x", true), going), "steady"},
		{"a pod that is not owned", 3, "a b c", edits(pod("x", false)), "steady"},
		{"before a change goes on", 3, "a b c:learner", edits(pod("x", true)), "orphans: DeletePod x"},
	})
}
