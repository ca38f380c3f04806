// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
)

// checkStatus holds for every status.
func checkStatus(f *facts, s v1beta2.ClusterStatus) string {
	is := func(t v1beta2.ClusterConditionType, want corev1.ConditionStatus) bool {
		return slices.ContainsFunc(s.Conditions, func(c v1beta2.ClusterCondition) bool { return c.Type == t && c.Status == want })
	}
	available := is(v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	lost := is(v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue)
	switch {
	case available && !f.Etcd.Linearizable:
		return "Available without a quorum"
	case lost && (f.Etcd.Linearizable || available):
		return "QuorumLost with a quorum"
	case lost && s.Phase != v1beta2.ClusterPhaseFailed:
		return "QuorumLost and phase " + string(s.Phase)
	case lost && s.Tolerance != nil && *s.Tolerance >= 0:
		return fmt.Sprintf("QuorumLost and tolerance %d", *s.Tolerance)
	case !f.Etcd.Linearizable && s.Tolerance != nil && *s.Tolerance >= 0:
		return fmt.Sprintf("tolerance %d without a quorum", *s.Tolerance)
	case f.Etcd.Linearizable && f.voters > 0 && (s.Tolerance == nil || int(*s.Tolerance) != f.serving-f.voters/2-1):
		return "wrong tolerance"
	case len(s.MemberStatuses) != len(f.Etcd.Members):
		return "members are missing from the list of the status"
	case f.Cluster.Spec.Bootstrap == nil && len(s.Members.Ready)+len(s.Members.Unready) != len(f.Etcd.Members):
		return "members are missing from the status"
	case int(s.Replicas) != f.own:
		return "wrong size"
	}
	if _, rejected := validation.FitClusterStatus(s, v1beta2.ClusterStatus{}); len(rejected) > 0 {
		return "the API rejects the status: " + rejected.ToAggregate().Error()
	}
	if problem := checkTruth(f, s); problem != "" {
		return problem
	}
	if problem := checkReady(f.Observed, s); problem != "" {
		return problem
	}
	for _, name := range s.Members.Ready {
		if m := f.memberNamed(name); m.Health != Healthy || m.Learner {
			return "member " + name + " called ready"
		}
	}
	return ""
}
