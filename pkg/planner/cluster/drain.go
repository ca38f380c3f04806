// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
)

// drain takes a voter that serves out of the client Service before it restarts or is
// defragmented, and hands its leadership over. It returns true until both are done.
//
// A member that stops closes its port seconds before its pod counts as unready: for as
// long as clients keep watches open. Kubernetes still leads clients there meanwhile. Their
// connections fail, and gRPC waits for a second or longer before it tries another member.
// A member that is out of the Service tells its clients to connect again, and they reach
// another member.
//
// The last member that clients reach stays in the Service: a restart costs an outage then,
// and nothing is won by beginning it earlier.
func drain(members []Member, pods []Pod, m *Member) (Plan, bool) {
	pod := podByName(pods, m.Name)
	if isGone(pod) {
		return Plan{}, false
	}
	plan, waits := Plan{}, true
	to := findSuccessor(members, pods, m)
	switch beside := hasOtherEndpoint(members, pods, m); {
	case m.Health != Healthy:
		// The controller does not reach it, but the others may follow it.
		if waits = to != nil && findLeader(members) == m; waits {
			plan = moveLeader(m, to)
		}
		return plan, waits
	case beside && pod.Role != PodDraining:
		plan = Plan{Actions: []Action{LabelPod{Name: pod.Name, UID: pod.UID, Role: PodDraining}}, RequeueAfter: recheckWaiting}
	case to != nil && findLeader(members) == m:
		plan = moveLeader(m, to)
	case beside && pod.InEndpoints:
		plan = wait(recheckWaiting, ReasonWaitingForService,
			"the client Service still leads to member "+m.Name+", which restarts or is defragmented next",
			noActionNeeded+" If it lasts, find out why the EndpointSlices of the client Service are not updated.")
	default:
		waits = false
	}
	plan.Draining = m.Name
	return plan, waits
}

// awaitService waits until the client Service leads to each voter that is ready again. A
// rollout that does not wait takes one member after the other away from the Service,
// faster than Kubernetes gives them back.
func awaitService(members []Member, pods []Pod, m *Member) (Plan, bool) {
	if m.Health != Healthy || !hasOtherEndpoint(members, pods, m) {
		return Plan{}, false
	}
	for _, other := range listVoters(members) {
		if pod := podByName(pods, other.Name); other != m && other.Health == Healthy && !isGone(pod) && pod.Ready && !pod.InEndpoints {
			return wait(recheckWaiting, ReasonWaitingForService,
				"the client Service does not lead to member "+other.Name+" yet, which is ready",
				noActionNeeded+" If it lasts, find out why the EndpointSlices of the client Service are not updated."), true
		}
	}
	return Plan{}, false
}

// hasOtherEndpoint is true if the client Service leads to a voter other than m that serves.
func hasOtherEndpoint(members []Member, pods []Pod, m *Member) bool {
	for _, other := range listVoters(members) {
		if pod := podByName(pods, other.Name); other != m && other.Health == Healthy && !isGone(pod) && pod.InEndpoints {
			return true
		}
	}
	return false
}

// staysOut is true for a pod that is not in the client Service and must not return to it yet. Its
// member is being removed or drained, or its container is about to be replaced. Until then Kubernetes
// may call the pod ready because of the present container. While the removal waits for members that serve, clients
// need each member that does.
func staysOut(o *Observed, m *Member, plan Plan) bool {
	if podByName(o.Pods, m.Name).Role != PodDraining {
		return false
	}
	chosen := plan.Draining == "" && !isAtRisk(plan) && len(listVoters(o.Etcd.Members)) > desiredSize(o.Cluster)
	return plan.Draining == m.Name || chosen || isRestarting(o, m)
}

// drainBeforeRemoval drains the clients of a voter that serves before it is removed. etcd
// does not respond to requests at a removed member. When the pod is deleted first, etcd
// ends the requests that it has and tells clients to go elsewhere. So the pod goes first,
// wherever the other voters are a quorum meanwhile. The member votes until its container
// has ended.
//
// While a cluster of four voters becomes one of three, it tolerates no failure. The same holds for
// three voters while one of them restarts.
func drainBeforeRemoval(now time.Time, q quorum, m *Member, reason RemoveReason) (Plan, bool) {
	pod := podByName(q.pods, m.Name)
	switch {
	case pod == nil || pod.Finished:
		return Plan{}, false
	case m.Health != Healthy && isStopping(now, pod):
		return wait(recheckWaiting, ReasonWaitingForPod,
			"the container of member "+m.Name+" is stopping", noActionNeeded), true
	case m.Health != Healthy && !pod.InEndpoints:
		return Plan{}, false // it has no clients
	}
	if !pod.Terminating && pod.Role != PodDraining {
		return Plan{Actions: []Action{LabelPod{Name: pod.Name, UID: pod.UID, Role: PodDraining}}, RequeueAfter: recheckWaiting}, true
	}
	if plan, leads := handOver(q.members, q.pods, m); leads {
		return plan, true
	}
	voters := len(listVoters(q.members))
	switch {
	case !pod.Terminating && pod.InEndpoints:
		return wait(recheckWaiting, ReasonWaitingForService,
			"the client Service still leads to member "+m.Name+", which is about to be removed", noActionNeeded), true
	case m.Health != Healthy || q.countServingWithout(m) < diagnosis.Quorum(voters):
		return Plan{}, false
	case pod.Terminating && recovery.IsEndOverdue(now, pod.EndsBy):
		return Plan{}, false // its node does not end it: the removal does, because the others are a quorum
	case pod.Terminating:
		return wait(recheckWaiting, ReasonWaitingForPod,
			"member "+m.Name+" is ending the requests of its clients", noActionNeeded), true
	default:
		why := DeleteDrained
		if reason == RemoveReplaced {
			why = DeleteReplaced
		}
		return Plan{Actions: []Action{DeletePod{Name: pod.Name, UID: pod.UID, Why: why}}, RequeueAfter: recheckWaiting}, true
	}
}

// stopLimit bounds how long a member that does not respond is kept until its container ends. The
// kubelet of a lost node never reports the end.
const stopLimit = 15 * time.Second

// isStopping is true while the container of a terminating pod runs, for up to stopLimit. etcd
// closes the client port first. A member that is removed between that moment and the end
// of its container drops the writes that it has accepted and not acknowledged.
func isStopping(now time.Time, pod *Pod) bool {
	return pod.Terminating && pod.Running && now.Sub(pod.DeletionRequested) < stopLimit
}

// handOver lets a leader that serves hand over to another voter before it stops. etcd itself
// does that only after the last client has left, up to 7 s later, and writes that other members
// forward to it meanwhile may be lost.
func handOver(members []Member, pods []Pod, m *Member) (Plan, bool) {
	to := findSuccessor(members, pods, m)
	if to == nil || findLeader(members) != m || m.Health != Healthy {
		return Plan{}, false
	}
	return moveLeader(m, to), true
}

func moveLeader(from, to *Member) Plan {
	return Plan{Actions: []Action{MoveLeader{From: from.ID, FromName: from.Name, To: to.ID, ToName: to.Name}}, RequeueAfter: recheckNow}
}

// findSuccessor is the healthy follower that is furthest ahead.
func findSuccessor(members []Member, pods []Pod, leader *Member) *Member {
	var best *Member
	for _, m := range listVoters(members) {
		if m == leader || m.Health != Healthy || isGone(podByName(pods, m.Name)) {
			continue
		}
		if best == nil || m.RaftIndex > best.RaftIndex {
			best = m
		}
	}
	return best
}
