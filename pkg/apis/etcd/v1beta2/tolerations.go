// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// NodeLossTaints are the keys of the taints that Kubernetes puts on a node that does not respond.
func NodeLossTaints() []string {
	return []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady}
}

// MatchesNodeLoss is true for a toleration of the taint that Kubernetes puts on a node that does
// not respond, with this key, the effect NoExecute and no value.
func MatchesNodeLoss(t *corev1.Toleration, key string) bool {
	if (t.Effect != "" && t.Effect != corev1.TaintEffectNoExecute) || (t.Key != "" && t.Key != key) {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return t.Value == ""
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		return false // they compare numbers
	default:
		return false
	}
}

// LimitsStay is true for a toleration with which Kubernetes deletes a pod after some time on a
// node that does not respond. The controller leaves it out of the pods of members.
func LimitsStay(t *corev1.Toleration) bool {
	if t.TolerationSeconds == nil {
		return false
	}
	for _, key := range NodeLossTaints() {
		if MatchesNodeLoss(t, key) {
			return true
		}
	}
	return false
}

// MemberLossTimeout is how long a member may be away before another member replaces it.
// recovery.memberLossTimeoutSeconds sets it. Without that field it is the shortest tolerationSeconds
// with which the author asks that pods leave a node that does not respond.
func (spec *ClusterSpec) MemberLossTimeout() time.Duration {
	if r := spec.Recovery; r != nil && r.MemberLossTimeoutSeconds != nil {
		return time.Duration(*r.MemberLossTimeoutSeconds) * time.Second
	}
	var shortest *int64
	if spec.Pod != nil {
		for i := range spec.Pod.Tolerations {
			t := &spec.Pod.Tolerations[i]
			if LimitsStay(t) && (shortest == nil || *t.TolerationSeconds < *shortest) {
				shortest = t.TolerationSeconds
			}
		}
	}
	if shortest == nil {
		return DefaultMemberLossTimeoutSeconds * time.Second
	}
	return time.Duration(min(max(*shortest, MinMemberLossTimeoutSeconds), MaxMemberLossTimeoutSeconds)) * time.Second
}
