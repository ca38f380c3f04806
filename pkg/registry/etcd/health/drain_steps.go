// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// drainSteps repeat why a member does not leave a cordoned node, with what a user can do.
func (f *findings) drainSteps() []v1beta2.NextStep {
	for _, c := range f.Cluster.Status.Conditions {
		if c.Type == v1beta2.ClusterConditionOnCordonedNode && c.Status == corev1.ConditionTrue {
			return []v1beta2.NextStep{{Why: c.Message, Command: f.kubectl("get pods -o wide")}}
		}
	}
	return nil
}
