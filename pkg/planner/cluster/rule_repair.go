// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// ruleRepair gives pods whose container does not run what is declared now. It stops nothing
// that serves, so it needs no quorum and waits for no other member. It brings members back
// that a wrong declaration has stopped, and then those that run and that it has made unreachable.
func ruleRepair(o *Observed) (Plan, bool) {
	target, low := parse(o.Cluster.Spec.Version), versionsOf(o).lowest()
	if target == nil {
		return Plan{}, false
	}
	var actions []Action
	if !o.Etcd.Linearizable {
		actions = repairUnnamed(o, target)
	}
	if low == nil {
		return Plan{Actions: actions, RequeueAfter: recheckQuorum}, len(actions) > 0
	}
	_, rejected := rejectStep(o, low, target)
	// A member without pod and PVC proves no way back to an older version: the status that names it
	// may be from before the others were upgraded.
	rejected = rejected || !o.Etcd.Linearizable && versionsOf(o).withObjects().isLeftBehind(target)
	for i := range o.Etcd.Members {
		// Without a quorum a learner may be a voter by now whose promotion was the last
		// thing that happened, and it may be the one that the others need.
		m := &o.Etcd.Members[i]
		pod := podByName(o.Pods, m.Name)
		if isGone(pod) || pod.Running || (m.Learner && o.Etcd.Linearizable) {
			continue
		}
		// A request to replace it waits for a quorum, which may be what it brings back.
		barred := rejected || isNewToMember(o, m, pod, target)
		switch c := changeDueUnrequested(o, m); {
		case !o.Etcd.Linearizable && isLastToKnow(o, pod):
		case !o.Etcd.Linearizable && canOnlyJoin(o, pod):
			actions = append(actions, RecreatePod{Name: pod.Name, UID: pod.UID, Version: pod.Version, Mode: RestartIdle})
		case c == recreate && awaitsVersion(o, m):
		case c == recreate, c == reimage && !barred:
			actions = append(actions, onlyIdle(renew(o, m, target, !barred, RestartRolling)))
		}
	}
	draining := ""
	if len(actions) == 0 {
		actions, draining = repairUnresponsive(o, target, rejected)
	}
	return Plan{Actions: actions, RequeueAfter: recheckQuorum, Draining: draining}, len(actions) > 0
}

// barredVersion says which member, whose container does not run, does not get the declared version without a quorum, and
// which version to declare. Empty if there is none.
func barredVersion(o *Observed) (why, remedy string) {
	target := parse(o.Cluster.Spec.Version)
	if target == nil || o.Etcd.Linearizable {
		return "", ""
	}
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		pod, has, may := podByName(o.Pods, m.Name), versionsOf(o).runs(m), versionsOf(o).mayRun(m)
		switch {
		case isGone(pod) || pod.Running || has == nil || may == nil || changeDueUnrequested(o, m) != reimage:
		case may.Minor() > target.Minor():
			return fmt.Sprintf("member %s may have run etcd %s, so %s is not started on its data", m.Name, may, target),
				fmt.Sprintf("Set spec.version to a version of %d.%d, and correct what the log of pod %s names.", may.Major(), may.Minor(), m.Name)
		case isNewToMember(o, m, pod, target):
			return fmt.Sprintf("member %s has run etcd %s, and without a quorum no member is brought to %s", m.Name, has, target),
				fmt.Sprintf("If the log of pod %s names a flag that %d.%d does not know, remove that flag until a quorum responds. If its image cannot be pulled, set spec.version to a version of %d.%d that can.",
					m.Name, has.Major(), has.Minor(), has.Major(), has.Minor())
		}
	}
	return "", ""
}

// repairUnnamed does the same for members that the status of a cluster that has served does not
// name: it has not named a member yet, or it is from an earlier time. Their PVCs name them. No
// status says which version they run, so they keep the version that they were made for.
func repairUnnamed(o *Observed, target *version.Version) []Action {
	var actions []Action
	for i := range o.Pods {
		p := &o.Pods[i]
		switch {
		case !p.Owned || isGone(p) || p.Running || pvcByName(o.PVCs, p.Name) == nil || memberByName(o.Etcd.Members, p.Name) != nil, isLastToKnow(o, p):
		case declarationOf(o).isStale(p), p.Fills, canOnlyJoin(o, p):
			actions = append(actions, RecreatePod{Name: p.Name, UID: p.UID, Version: p.Version, Mode: RestartIdle})
		case p.Outdated && isSameVersion(p.Version, target) && (p.NeedsNewPod || p.FromPolicy):
			actions = append(actions, RecreatePod{Name: p.Name, UID: p.UID, Version: target.String(), Mode: RestartIdle})
		case (p.Outdated || putsBack(o, p, nil)) && isSameVersion(p.Version, target): // from another repository
			actions = append(actions, UpgradePod{Name: p.Name, UID: p.UID, Version: target.String(), Mode: RestartIdle})
		}
	}
	return actions
}

// canOnlyJoin is true for a pod that was created for the data of its member in an etcd without
// learners, if the only voter awaits that member: there is no such data. On an empty disk etcd in that
// pod finds no member to join, and ends. Such a pod was created while the voter was out of reach.
func canOnlyJoin(o *Observed, p *Pod) bool {
	return len(p.Peers) == 1 && p.Peers[0] == p.Name && !upgradePathOf(o).knowsLearners() &&
		(onlyVoterAwaits(o, p.Name) || joinsOnlyVoter(o, p.Name, memberByName(o.Etcd.Members, p.Name)))
}

// isLastToKnow is true for a pod that joins an etcd without learners, if the only voter awaits its member
// and nothing else would say so after the pod is deleted. The new pod would be for a member that has joined,
// and would not start on an empty disk. So the pod stays as it is until its member has joined.
func isLastToKnow(o *Observed, p *Pod) bool {
	return len(p.Peers) > 1 && !upgradePathOf(o).knowsLearners() && onlyVoterLists(o, p.Name) && !onlyVoterAwaits(o, p.Name)
}

// onlyIdle restricts an action to a container that does not run.
func onlyIdle(a Action) Action {
	switch a := a.(type) {
	case UpgradePod:
		a.Mode = RestartIdle
		return a
	case RecreatePod:
		a.Mode = RestartIdle
		return a
	default:
		return a
	}
}
