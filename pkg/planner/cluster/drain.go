// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// drain takes a voter that serves out of the client Service before it restarts or is
// defragmented, and hands its leadership over. It returns true until both are done.
//
// A member that stops closes its port seconds before its pod counts as unready: for as
// long as clients keep watches open. Kubernetes leads clients there meanwhile, their
// connections are refused, and gRPC waits for a second or longer before it tries another
// member. A member that is out of the Service tells its clients to connect again, and they
// reach another one.
//
// The last member that clients reach stays in the Service: a restart costs an outage then,
// and nothing is won by beginning it earlier.
func (o *Observed) drain(m *Member) (Plan, bool) {
	pod := o.pod(m.Name)
	if pod.gone() {
		return Plan{}, false
	}
	plan, waits := Plan{}, true
	to := o.successor(m)
	switch beside := o.routedBeside(m); {
	case m.Health != Healthy:
		// The controller does not reach it, but the others may follow it.
		if waits = to != nil && o.leader() == m; waits {
			plan = Plan{Actions: []Action{MoveLeader{From: m.ID, FromName: m.Name, To: to.ID, ToName: to.Name}}, RequeueAfter: recheckNow}
		}
		return plan, waits
	case beside && pod.Role != PodLeaving:
		plan = Plan{Actions: []Action{LabelPod{Name: pod.Name, UID: pod.UID, Role: PodLeaving}}, RequeueAfter: recheckWaiting}
	case to != nil && o.leader() == m:
		plan = Plan{Actions: []Action{MoveLeader{From: m.ID, FromName: m.Name, To: to.ID, ToName: to.Name}}, RequeueAfter: recheckNow}
	case beside && pod.Routed:
		plan = wait(recheckWaiting, "WaitingForService",
			"the client Service still leads to member "+m.Name+", which is out of service for a moment next",
			"no action needed unless this persists: then find out why the EndpointSlices of the client Service are not updated")
	default:
		waits = false
	}
	plan.Leaving = m.Name
	return plan, waits
}

// awaitService waits until the client Service leads to each voter that is ready again. A
// rollout that does not wait takes one member after the other away from the Service,
// faster than Kubernetes gives them back.
func (o *Observed) awaitService(m *Member) (Plan, bool) {
	if m.Health != Healthy || !o.routedBeside(m) {
		return Plan{}, false
	}
	for _, other := range o.voters() {
		if pod := o.pod(other.Name); other != m && other.Health == Healthy && !pod.gone() && pod.Ready && !pod.Routed {
			return wait(recheckWaiting, "WaitingForService",
				"the client Service does not lead to member "+other.Name+" yet, which is ready",
				"no action needed unless this persists: then find out why the EndpointSlices of the client Service are not updated"), true
		}
	}
	return Plan{}, false
}

// routedBeside is true if the client Service leads to a voter other than m that serves.
func (o *Observed) routedBeside(m *Member) bool {
	for _, other := range o.voters() {
		if pod := o.pod(other.Name); other != m && other.Health == Healthy && !pod.gone() && pod.Routed {
			return true
		}
	}
	return false
}

// staysOut is true for a pod that was taken out of the client Service and must not come
// back yet: its removal or its drain goes on, or its container is about to be replaced.
// Kubernetes may call a pod ready because of the container before.
func (o *Observed) staysOut(m *Member, plan Plan) bool {
	if o.pod(m.Name).Role != PodLeaving {
		return false
	}
	return plan.Leaving == m.Name || plan.Leaving == "" && len(o.voters()) > o.size() || o.restarts(m)
}
