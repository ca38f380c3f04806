// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestDrainHook: Kubernetes rejects a pod whose hook takes longer than its grace period.
func TestDrainHook(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		grace *int64
		hook  bool
	}{
		{nil, true},
		{ptr.To[int64](0), false},
		{ptr.To[int64](drainSeconds), false},
		{ptr.To[int64](drainSeconds + 1), true},
	} {
		c := newCluster()
		c.Spec.Pod = &v1beta2.PodPolicy{TerminationGracePeriodSeconds: test.grace}
		hook := Pod(c, MemberPod{Name: first}).Spec.Containers[0].Lifecycle
		if (hook != nil) != test.hook {
			t.Errorf("a grace period of %v: hook %+v", ptr.Deref(test.grace, -1), hook)
		}
	}
}

// TestDrainHookRestartsNoMember: members of an earlier release have no hook, and stay.
func TestDrainHookRestartsNoMember(t *testing.T) {
	t.Parallel()
	c := newCluster()
	pod := Pod(c, MemberPod{Name: first})
	pod.Spec.Containers[0].Lifecycle = nil
	if _, changed := WithVersion(c, pod); changed {
		t.Error("a pod without the hook is taken for one that must change")
	}
	if pod.Annotations[AnnotationTemplate] != TemplateHash(c) {
		t.Error("the hook is part of the hash of the template")
	}
}
