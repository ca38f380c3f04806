// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// serviceAsDeclared is False while the client Service differs from its template and cannot
// be changed to match it. That does not harm the members.
func serviceAsDeclared(o *Observed, plan Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionServiceAsDeclared
	hasTemplate := o.Cluster.Spec.Services != nil && o.Cluster.Spec.Services.Client != nil
	said := slices.ContainsFunc(o.Cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool { return c.Type == t })
	switch {
	case !hasTemplate && !said && plan.ServiceRejected == "":
		return v1beta2.ClusterCondition{}
	case plan.ServiceRejected != "":
		return is(t, corev1.ConditionFalse, ReasonRejected, plan.ServiceRejected+". Change spec.services.client, or the policy that rejects it. The controller tries again at growing intervals.")
	case o.ClientServiceFixed != "":
		return is(t, corev1.ConditionFalse, ReasonImmutable, o.ClientServiceFixed)
	case o.ClientService == Missing:
		return is(t, corev1.ConditionFalse, ReasonMissing, "the client Service does not exist yet")
	case o.ClientService == NotOwned:
		return is(t, corev1.ConditionFalse, ReasonNotOwned, "Service "+o.Cluster.Name+"-client exists and is not owned by this cluster")
	default:
		return is(t, corev1.ConditionTrue, ReasonAsDeclared, "")
	}
}
