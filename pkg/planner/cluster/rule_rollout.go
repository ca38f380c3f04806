// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// ruleRollout makes the members what is declared, one by one: a broken one first, the
// leader last, each only while the others are a quorum without it.
func ruleRollout(o *Observed) (Plan, bool) {
	target, low := parse(o.Cluster.Spec.Version), versionsOf(o).lowest()
	if target == nil || low == nil {
		return Plan{}, false
	}
	rejection, rejected := rejectStep(o, low, target)
	mislabeled := findMislabeled(o)
	images := !rejected && mislabeled == nil // another member with that image would be no better
	next := nextDue(o, images)
	if plan, waits := awaitRestarts(o, next != nil); waits {
		return plan, true
	}
	held, cordoned := findHeldByTrust(o), findHeldOnNode(o)
	switch rewritten := findRewritten(o); {
	case next != nil:
		return restart(o, next, target, images), true
	case held != nil:
		reason, message, remedy := certificateInput(o).HoldRestart(held.Name)
		return wait(recheckWaiting, Reason(reason), message, remedy), true
	case mislabeled != nil:
		return waitForImage(o, mislabeled), true
	case rejected && (nextDue(o, true) != nil || isSplit(o)):
		return rejection, true
	case cordoned != nil:
		return waitForOtherNode(o, cordoned), true
	case rewritten != nil:
		return waitForRewriter(o, podByName(o.Pods, rewritten.Name), rewritten), true
	default:
		return Plan{}, false
	}
}

// nextDue returns the member that goes next, or nil; without images only members whose
// pods must be made again.
func nextDue(o *Observed, images bool) *Member {
	var next *Member
	leader := findLeader(o.Etcd.Members)
	for _, m := range listVoters(o.Etcd.Members) {
		if c := changeDue(o, m); c != recreate && (c != reimage || !images) || isHeldByTrust(o, m) || isHeldOnNode(o, m, c) || !images && awaitsVersion(o, m) {
			continue
		}
		if next == nil || rank(o.Pods, m, leader) > rank(o.Pods, next, leader) || isWorse(o.Pods, m, next) {
			next = m
		}
	}
	return next
}

// findHeldByTrust returns a voter that is not as declared and stays so because of what the others trust, or nil.
func findHeldByTrust(o *Observed) *Member {
	for _, m := range listOwnVoters(o.Etcd.Members) {
		if changeDue(o, m) != asDeclared && isHeldByTrust(o, m) {
			return m
		}
	}
	return nil
}

// isWorse is true if neither member serves, and Kubernetes calls only the other one ready.
func isWorse(pods []Pod, m, other *Member) bool {
	p, q := podByName(pods, m.Name), podByName(pods, other.Name)
	return m.Health != Healthy && other.Health != Healthy && !isGone(p) && !isGone(q) && !p.Ready && q.Ready
}

// restart makes one member what is declared, in place, after it was drained. In a cluster of fewer than three
// voters the others are no quorum meanwhile, so there it costs a short outage, and
// every other voter must serve before.
func restart(o *Observed, m *Member, target *version.Version, upgrade bool) Plan {
	outage, plan, waits := awaitQuorumWithout(o, m)
	if waits {
		return plan
	}
	if other := quorumOf(o).findUnready(m); other != nil && m.Health == Healthy {
		// etcd serves a moment before Kubernetes sends clients to it again. A rollout that goes on at
		// once takes the last member away from the service.
		return waitReady(other)
	}
	if plan, waits := awaitService(o.Etcd.Members, o.Pods, m); waits {
		return plan
	}
	leader := findLeader(o.Etcd.Members)
	if leader == nil && m.Health == Healthy && len(listVoters(o.Etcd.Members)) > 1 {
		// It may be the leader, which transfers its leadership first.
		plan := wait(recheckWaiting, ReasonNoLeader, "most members do not agree on a leader yet", noActionNeeded)
		plan.Draining = m.Name
		return plan
	}
	if plan, waits := drain(o.Etcd.Members, o.Pods, m); waits && !isLongUnresponsive(o, m) {
		return plan
	}
	mode := RestartRolling
	if outage {
		mode = RestartWithOutage
	}
	return Plan{Actions: []Action{renew(o, m, target, upgrade, mode)}, RequeueAfter: recheckWaiting, Draining: m.Name}
}

// awaitQuorumWithout waits until the others serve as a quorum while a member restarts. If it does not wait,
// outage is true if they are none: of fewer than three voters. A member that serves itself goes only
// if all others do.
func awaitQuorumWithout(o *Observed, m *Member) (outage bool, plan Plan, waits bool) {
	voters, others := len(listVoters(o.Etcd.Members)), quorumOf(o).countServingWithout(m)
	outage = others < diagnosis.Quorum(voters)
	if (outage && (voters > 2 || others < voters-1)) || (m.Health == Healthy && others < voters-1) {
		return outage, wait(recheckQuorum, ReasonQuorumAtRisk,
			fmt.Sprintf("member %s cannot be restarted: %d of the %d other voters serve", m.Name, others, voters-1),
			serveAgain), true
	}
	return outage, Plan{}, false
}

// rejectStep says why the members may not be brought from their versions to target; ok
// is false if they may.
func rejectStep(o *Observed, low, target *version.Version) (plan Plan, ok bool) {
	if !step(low, target) || versionsOf(o).isLeftBehind(target) {
		return wait(recheckSteady, ReasonVersionStep,
			fmt.Sprintf("members run %s and %s is declared: etcd moves up one minor version at a time", low, target),
			fmt.Sprintf("Set spec.version to a version of %d.%d or %d.%d.", low.Major(), low.Minor(), low.Major(), low.Minor()+1)), true
	}
	if patch, early := tooEarly(low, target); early {
		return wait(recheckSteady, ReasonVersionStep,
			fmt.Sprintf("members run %s and %s is declared: before %s, %s", low, target, patch.Version, patch.Because),
			fmt.Sprintf("Set spec.version to %s or a later %d.%d first.", patch.Version, low.Major(), low.Minor())), true
	}
	if ahead, patch, unsafe := versionsOf(o).unsafeReturn(target); unsafe {
		return wait(recheckSteady, ReasonVersionStep,
			fmt.Sprintf("a member may run %s and %s is declared: before %s, %s", ahead, target, patch.Version, patch.Because),
			fmt.Sprintf("Set spec.version to %s or a later %d.%d first.", patch.Version, target.Major(), target.Minor())), true
	}
	if upgradePathOf(o).logBars(low, target) {
		return prepareLog(o, low), true
	}
	return Plan{}, false
}

// waitForImage is the plan while an image holds another version than declared.
func waitForImage(o *Observed, m *Member) Plan {
	pod := podByName(o.Pods, m.Name)
	return wait(recheckSteady, ReasonImageVersion,
		fmt.Sprintf("member %s runs etcd %s: its image %s does not hold %s", m.Name, m.Version, pod.ImageName, pod.Version),
		fmt.Sprintf("Set spec.version to %s, or have spec.repository and spec.imageDigest name an image that holds etcd %s.", m.Version, pod.Version))
}

// waitForRewriter is the plan while something sets the image of a pod again each time after the controller has
// put it back. A pod that is no member's yet has no m.
func waitForRewriter(o *Observed, p *Pod, m *Member) Plan {
	r, what := o.Record.PutBack, "etcd in it is as declared, so the image stays"
	if !keepsImage(o, p, m) {
		what = "it is put back again at " + r.Since.Add(pauseAfter(r.Round)).UTC().Format(time.TimeOnly) + " UTC"
	}
	return wait(recheckWaiting, ReasonImageRewritten,
		fmt.Sprintf("something else than this controller has set the image of pod %s to %s again after it was put back: %s", p.Name, p.ImageName, what),
		rowOf(ReasonImageRewritten).Remedy)
}

// awaitRestarts waits for members that restart, or are about to. It waits for an
// unresponsive member only if other members must restart after it.
func awaitRestarts(o *Observed, more bool) (Plan, bool) {
	for _, m := range listVoters(o.Etcd.Members) {
		pod := podByName(o.Pods, m.Name)
		restarts := isRestarting(o, m)
		if !restarts && (!more || m.Version != "" || isGone(pod) || changeDue(o, m) != asDeclared) {
			continue
		}
		why := Wait{ReasonWaitingForMember, "member " + m.Name + " restarts with version " + pod.Version, noActionNeeded}
		if !restarts && !isFresh(o.Now, pod) {
			why.Message, why.Remedy = "member "+m.Name+" does not respond, and other members restart after it", serveAgain
		}
		return waitForPod(o.Cluster, pod, recheckWaiting, why), true
	}
	return Plan{}, false
}

// renew returns the action that makes the pod of a member what is declared. If it may
// not be upgraded now, a pod that is made again keeps its version.
func renew(o *Observed, m *Member, target *version.Version, upgrade bool, mode RestartMode) Action {
	pod, v := podByName(o.Pods, m.Name), target.String()
	switch reimages := changeDueUnrequested(o, m) == reimage; {
	case reimages && !makesNewPod(o, pod):
		return UpgradePod{Name: pod.Name, UID: pod.UID, Version: v, Mode: mode}
	case !reimages && !upgrade:
		v = pod.Version
	}
	return RecreatePod{Name: pod.Name, UID: pod.UID, Version: v, Mode: mode}
}

// waitForOtherNode is the plan while a member keeps its pod because of its node.
func waitForOtherNode(o *Observed, m *Member) Plan {
	return wait(recheckWaiting, ReasonNoOtherNode,
		fmt.Sprintf("member %s serves on cordoned node %s and is not as declared. Its pod is not made again before another node takes the pod of its successor",
			m.Name, podByName(o.Pods, m.Name).Node),
		leaveNodeRemedy(o.Cluster, o.Pods, o.PVCs, m))
}
