// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// bugsOfCertificates are mistakes with the certificates that the controller issues.
func bugsOfCertificates() []bug {
	return []bug{
		{name: "signs with a CA that members do not trust yet", rules: "T1", wrap: doing(signEarly), story: loseTogether(secretCA, true)},
	}
}

// signEarly issues a certificate where the CA has only to be distributed.
func signEarly(_ planner.Observed, plan planner.Plan) planner.Plan {
	plan.Actions = slices.Clone(plan.Actions)
	for i, a := range plan.Actions {
		if issue, is := a.(planner.IssueCertificate); is && issue.Change == certificates.ChangeBundle {
			issue.Change = certificates.ChangeLost
			plan.Actions[i] = issue
		}
	}
	return plan
}
