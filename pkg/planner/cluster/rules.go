// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// RuleName names a rule. The file of rule "scale-up" is rule_scale_up.go.
type RuleName string

// Names of the rules, in the order in which Decide calls them. The list in decide.go says
// what each of them does.
const (
	RuleDeleting         RuleName = "deleting"
	RulePaused           RuleName = "paused"
	RuleFoundVolumes     RuleName = "found-volumes"
	RuleCertificates     RuleName = "certificates"
	RuleNameConflict     RuleName = "name-conflict"
	RuleRecord           RuleName = "record"
	RulePeerService      RuleName = "peer-service"
	RuleRecovery         RuleName = "recovery"
	RuleBootstrap        RuleName = "bootstrap"
	RuleHibernate        RuleName = "hibernate"
	RuleRestartTogether  RuleName = "restart-together"
	RuleRecreatePods     RuleName = "recreate-pods"
	RuleRepair           RuleName = "repair"
	RuleQuorum           RuleName = "quorum"
	RuleClusterID        RuleName = "cluster-id"
	RuleTakeOver         RuleName = "take-over"
	RuleUnmanagedMembers RuleName = "unmanaged-members"
	RuleOrphans          RuleName = "orphans"
	RuleJoining          RuleName = "joining"
	RuleReplace          RuleName = "replace"
	RuleScaleDown        RuleName = "scale-down"
	RuleScaleUp          RuleName = "scale-up"
	RuleOperation        RuleName = "operation"
	RuleRollout          RuleName = "rollout"
	RuleSteady           RuleName = "steady"
)

// rule looks at an observation. It returns a plan and true, or false to leave the decision
// to the rules after it.
type rule struct {
	name   RuleName
	decide func(*Observed) (Plan, bool)
}

// Rules returns the names of the rules in the order in which Decide calls them.
func Rules() []RuleName {
	names := make([]RuleName, 0, len(rules))
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}
