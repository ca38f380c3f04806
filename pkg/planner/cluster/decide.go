// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// rules in the order in which Decide calls them; the first that returns a plan decides. The
// order keeps the cluster safe:
//   - No rule below recovery runs while the data moves to a recovery member.
//   - No rule below bootstrap runs before the cluster exists.
//   - No rule below quorum runs without a member list that was read through a quorum.
//   - No rule below joining runs while a membership change is unfinished.
var rules = []rule{
	// Releases the PVCs of a cluster that is being deleted, then removes the finalizer.
	{RuleDeleting, ruleDeleting},
	// Writes the status of a paused cluster and changes nothing else.
	{RulePaused, rulePaused},
	// Waits while PVCs of an earlier cluster of this name exist, or takes them back on request.
	{RuleFoundVolumes, ruleFoundVolumes},
	// Waits while a certificate is missing or unusable.
	{RuleCertificates, ruleCertificates},
	// Waits while objects that this cluster does not own have its names.
	{RuleNameConflict, ruleNameConflict},
	// Creates the record of the cluster, or completes it from what still exists.
	{RuleRecord, ruleRecord},
	// Creates the headless Service.
	{RulePeerService, rulePeerService},
	// Carries a recovery or a restore from its request to its end.
	{RuleRecovery, ruleRecovery},
	// Starts a new cluster with one bootstrap member.
	{RuleBootstrap, ruleBootstrap},
	// Deletes the pods of a cluster of size 0 and keeps its PVCs.
	{RuleHibernate, ruleHibernate},
	// Restarts all members at once that reject each other's certificates permanently.
	{RuleRestartTogether, ruleRestartTogether},
	// Creates the pods of members that have a PVC and no pod.
	{RuleRecreatePods, ruleRecreatePods},
	// Gives pods whose container does not run what is declared now.
	{RuleRepair, ruleRepair},
	// Waits while only members of another etcd respond at the addresses of the members.
	{RuleClusterID, ruleClusterID},
	// Waits while no quorum responds.
	{RuleQuorum, ruleQuorum},
	// Joins the etcd that another program runs, and removes its old members on request. Changes
	// nothing else of the membership while an old member is left.
	{RuleTakeOver, ruleTakeOver},
	// Waits while etcd has a member that this controller did not add.
	{RuleUnmanagedMembers, ruleUnmanagedMembers},
	// Deletes the pods and PVCs of members that were removed from etcd, and of recovery members that
	// were abandoned.
	{RuleOrphans, ruleOrphans},
	// Finishes the membership change that was begun: promotes the joining member or removes it.
	{RuleJoining, ruleJoining},
	// Removes a voter that has lost its pod and its data, once the pod of its successor waits.
	{RuleReplace, ruleReplace},
	// Removes one voter of a cluster that has more than the desired size.
	{RuleScaleDown, ruleScaleDown},
	// Adds one member to a cluster that has fewer than the desired size.
	{RuleScaleUp, ruleScaleUp},
	// Carries on with the requested operation, such as a defragmentation.
	{RuleOperation, ruleOperation},
	// Restarts one voter that is not as declared, or changes its version.
	{RuleRollout, ruleRollout},
	// Does nothing to a cluster that is as declared.
	{RuleSteady, ruleSteady},
}

// Plan is what a decision comes to.
type Plan struct {
	// Rule is the name of the rule that decided.
	Rule RuleName
	// Actions in the order in which they must be done; the first error ends the plan.
	Actions []Action
	// Wait is what the cluster waits for, if it waits.
	Wait *Wait
	// Draining is the name of the voter that is out of the client Service, or is about to
	// be: it is removed, restarts or is defragmented next. Empty if there is none.
	Draining string
	// RequeueAfter is when to look again if nothing happens before; 0: not at all.
	RequeueAfter time.Duration
	// ServiceRejected is why Kubernetes rejects the client Service or a change of it, in its
	// own words; empty if it does not.
	ServiceRejected string
	// Operation, if not nil, is what the operation of the status is from now on.
	Operation *v1beta2.ClusterOperation
}

// Decide says what to do next. It never asks for more than one membership change.
func Decide(o Observed) Plan {
	TakeUpStarted(&o)
	for _, r := range rules {
		if plan, decided := r.decide(&o); decided {
			plan = holdMembership(&o, r.name, plan)
			plan.Rule = r.name
			unannounced, next := upkeepAlarms(&o, plan)
			if plan.Rule != RuleFoundVolumes { // the Secrets of the earlier cluster may come back, too
				unannounced = slices.Concat(keepCertificates(&o, plan), keepClients(&o), unannounced)
			}
			if (len(unannounced) > 0 || hasUnreportedClients(o.Clients, o.Cluster.Status.Clients)) && (plan.RequeueAfter == 0 || plan.RequeueAfter > recheckUnannounced) {
				plan.RequeueAfter = recheckUnannounced
			}
			if next > 0 && (plan.RequeueAfter == 0 || plan.RequeueAfter > next) {
				plan.RequeueAfter = next
			}
			plan.Actions = slices.Concat(labelObjects(&o, plan), addFinalizer(o.Cluster, plan), unannounced, upkeep(&o, plan), plan.Actions)
			return plan
		}
	}
	return Plan{}
}
