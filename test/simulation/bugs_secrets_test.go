// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfSecrets are mistakes after several Secrets of a cluster were deleted together.
func bugsOfSecrets() []bug {
	return []bug{
		{name: "issues what no member accepts", rules: "T1", wrap: doing(issueLost), story: loseTogether(secretCA|secretOperator, true)},
		{name: "leaves members alone that reject each other", rules: "L1", wrap: doing(leaveDistrusting), story: loseTogether(secretCA|secretPeer, true)},
		{name: "restarts all members although they could restart one by one", rules: "S8", wrap: doing(restartTogether), story: loseTogether(secretCA, true)},
		{name: "takes members that trust a dropped CA for ones that reject the others", rules: "S2 S8", wrap: deciding(rejectBehind), story: func(s *schedules.Schedule) { loseSecretsAfterRotation(s); s.Events[1].A = secretCA - 1 }},
		{name: "repairs nothing while the certificate of clients is missing", rules: "L1", wrap: doing(awaitAll), story: loseTogether(secretCA|secretClient, true)},
	}
}

// Secrets of an event, as bits.
const (
	secretPeer = 1 << iota
	_
	secretOperator
	secretClient
	secretCA
)

// loseTogether deletes these Secrets of a cluster that serves, while no controller runs that has them
// in memory.
func loseTogether(secrets int, volumes bool) func(*schedules.Schedule) {
	return func(s *schedules.Schedule) {
		s.Certificates, s.Volumes, s.Size, s.Deadly = true, volumes, 3, false
		s.Events = []schedules.Event{{At: time.Minute, Kind: schedules.EventLoseSecrets, A: secrets - 1, B: 1}}
	}
}

// issueLost issues each certificate that is missing as soon as there is a CA.
func issueLost(o planner.Observed, plan planner.Plan) planner.Plan {
	plan.Actions = slices.Clone(plan.Actions)
	usable := func(c certificates.Certificate) bool {
		return c.Use == v1beta2.CertificateUseCA && c.State == certificates.Usable
	}
	for _, c := range o.Certificates {
		issue := planner.IssueCertificate{Use: c.Use, Change: certificates.ChangeLost}
		if c.State == certificates.Missing && slices.ContainsFunc(o.Certificates, usable) && !slices.Contains(plan.Actions, planner.Action(issue)) {
			plan.Actions = append([]planner.Action{issue}, plan.Actions...)
		}
	}
	return plan
}

// leaveDistrusting restarts no member that rejects the others.
func leaveDistrusting(_ planner.Observed, plan planner.Plan) planner.Plan {
	plan.Actions = slices.DeleteFunc(slices.Clone(plan.Actions), func(a planner.Action) bool {
		d, is := a.(planner.DeletePod)
		return is && d.Why == planner.DeleteDistrusting
	})
	return plan
}

// restartTogether restarts all members at once that do not trust the present CA.
func restartTogether(o planner.Observed, plan planner.Plan) planner.Plan {
	if plan.Rule != planner.RuleRollout {
		return plan
	}
	plan.Actions = nil
	for _, p := range o.Pods {
		if o.CA != nil && !p.TrustsCA {
			plan.Actions = append(plan.Actions, planner.DeletePod{Name: p.Name, UID: p.UID, Why: planner.DeleteDistrusting})
		}
	}
	return plan
}

// rejectBehind takes each member that has not restarted with the present bundle for one that rejects the
// others, as a controller does that does not find the dropped CA in their chains.
func rejectBehind(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	return decide(withPods(o, func(p *planner.Pod) { p.Accepts = p.Accepts && p.Trust == o.Trust }))
}

// awaitAll does nothing but issue certificates while one cannot be used.
func awaitAll(o planner.Observed, plan planner.Plan) planner.Plan {
	if !slices.ContainsFunc(o.Certificates, func(c certificates.Certificate) bool { return c.State != certificates.Usable }) {
		return plan
	}
	plan.RequeueAfter = 5 * time.Second
	plan.Actions = slices.DeleteFunc(slices.Clone(plan.Actions), func(a planner.Action) bool {
		switch a.(type) {
		case planner.IssueCA, planner.IssueCertificate:
			return false
		default:
			return true
		}
	})
	return plan
}
