// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestServiceAsDeclared(t *testing.T) {
	const conditionType = v1beta2.ClusterConditionServiceAsDeclared
	hasTemplate := func(o *Observed) {
		o.Cluster.Spec.Services = &v1beta2.ServicesPolicy{Client: &v1beta2.ServiceTemplate{}}
	}
	fixed := func(o *Observed) { o.ClientServiceFixed = "service c-client keeps its family; delete the service" }
	was := func(o *Observed) {
		o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{{Type: conditionType, Status: corev1.ConditionFalse, Reason: "Immutable", Message: "old"}}
	}
	for _, tt := range []struct {
		name     string
		edits    []func(*Observed)
		rejected string
		status   corev1.ConditionStatus
		reason   string
		says     string
	}{
		{"nothing declared", nil, "", "", "", ""},
		{"as declared", edits(hasTemplate), "", corev1.ConditionTrue, "AsDeclared", ""},
		{"not there yet", edits(hasTemplate, clients(Missing)), "", corev1.ConditionFalse, "Missing", "does not exist yet"},
		{"not owned", edits(hasTemplate, clients(NotOwned)), "", corev1.ConditionFalse, "NotOwned", "c-client"},
		{"fixed", edits(hasTemplate, fixed), "", corev1.ConditionFalse, "Immutable", "delete the service"},
		{"rejected", edits(hasTemplate, clients(Drifted)), "no IPv6 here", corev1.ConditionFalse, "Rejected", "no IPv6 here. Change spec.services.client"},
		{"nothing declared any more", edits(was), "", corev1.ConditionTrue, "AsDeclared", ""},
	} {
		o := observed(t, 3, "a b c", tt.edits...)
		plan := Decide(o)
		plan.ServiceRejected = tt.rejected
		c := find(Status(o, plan), conditionType)
		if tt.status == "" {
			if c != nil {
				t.Errorf("%s: %+v", tt.name, c)
			}
			continue
		}
		if c == nil || c.Status != tt.status || c.Reason != tt.reason || !strings.Contains(c.Message, tt.says) {
			t.Errorf("%s: %+v, not %s (%s) %q", tt.name, c, tt.status, tt.reason, tt.says)
		}
	}
}
