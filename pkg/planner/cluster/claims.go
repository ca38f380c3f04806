// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// upkeepClaims keeps the claims what is declared: who owns them, which is what the
// retention policy comes to, and how large they are. Neither needs a quorum: a database
// that has filled its volume is a reason to let that grow.
func upkeepClaims(o *Observed) []Action {
	var actions []Action
	for i := range o.Claims {
		c := &o.Claims[i]
		if o.Etcd.Linearizable && o.member(c.Name) == nil {
			continue // it goes, or is given up
		}
		if c.Owned && !c.Terminating && (c.Drifted || c.Growth == resources.GrowthDue) {
			actions = append(actions, RepairClaim{Name: c.Name, UID: c.UID})
		}
	}
	return actions
}

// volumesAsDeclared is False while a volume is smaller than declared.
func volumesAsDeclared(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionVolumesAsDeclared
	if !o.persistent() {
		return v1beta2.ClusterCondition{}
	}
	var refused, grows []string
	why := ""
	for i := range o.Claims {
		c := &o.Claims[i]
		if !c.Owned || c.Terminating || c.Growth == resources.GrownEnough {
			continue
		}
		if c.Growth == resources.GrowthRefused {
			refused = append(refused, c.Name)
		} else {
			grows = append(grows, c.Name)
		}
		if why == "" && c.GrowthWhy != "" {
			why = ": " + c.GrowthWhy
		}
	}
	switch {
	case len(refused) > 0:
		return is(t, corev1.ConditionFalse, v1beta2.ReasonGrowthRefused, "volumes that may not grow are those of "+strings.Join(refused, ", ")+why+
			"; declare the old size again, or see to it that they may and remove the annotation "+resources.AnnotationGrowthRefused+" from their claims")
	case len(grows) > 0:
		return is(t, corev1.ConditionFalse, "Growing", "volumes that are not as large as declared yet are those of "+strings.Join(grows, ", ")+why)
	default:
		return is(t, corev1.ConditionTrue, "AsDeclared", "")
	}
}

// claim returns the claim of the member called name, or nil.
func (o *Observed) claim(name string) *Claim {
	for i := range o.Claims {
		c := &o.Claims[i]
		if c.Name == name && c.Owned && !c.Terminating {
			return c
		}
	}
	return nil
}
