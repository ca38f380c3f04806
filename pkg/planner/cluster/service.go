// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// serviceAsDeclared is False while the service for clients is not what its template
// says, and cannot become it. Nothing of that harms the members.
func serviceAsDeclared(o *Observed, plan Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionServiceAsDeclared
	declared := o.Cluster.Spec.Services != nil && o.Cluster.Spec.Services.Client != nil
	said := slices.ContainsFunc(o.Cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool { return c.Type == t })
	switch {
	case !declared && !said && plan.ServiceRefused == "":
		return v1beta2.ClusterCondition{}
	case plan.ServiceRefused != "":
		return is(t, corev1.ConditionFalse, "Refused", plan.ServiceRefused+"; change spec.services.client or what refuses it; it is tried again by and by")
	case o.ClientServiceFixed != "":
		return is(t, corev1.ConditionFalse, "Fixed", o.ClientServiceFixed)
	case o.ClientService == Missing:
		return is(t, corev1.ConditionFalse, "Missing", "the service for clients is not there yet")
	case o.ClientService == Foreign:
		return is(t, corev1.ConditionFalse, "Foreign", "a service of this name belongs to somebody else: "+o.Cluster.Name+"-client")
	default:
		return is(t, corev1.ConditionTrue, "AsDeclared", "")
	}
}
