// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/diagnosis"

// ruleReplace removes a voter that has lost its pod and its data, once the pod of its
// successor waits. Rule scale-up then adds the successor. The pod of a voter with a PVC is
// created again by rule recreate-pods. If there are more voters than the desired size, rule
// scale-down removes the lost one.
//
// A voter that is away for too long, or whose replacement a user requested, keeps its vote
// until its successor votes: it may come back with data that another loss makes precious.
// Rules scale-up and scale-down see to that. Two kinds of voters go first, because nothing
// could join beside them: in an etcd without learners one that does not respond, and one that
// blocksJoining names.
func ruleReplace(o *Observed) (Plan, bool) {
	if len(o.voters()) > o.size() {
		return Plan{}, false
	}
	for _, m := range o.voters() {
		pod := o.pod(m.Name)
		away, reason := o.mustBeReplaced(m), RemoveAway
		if !away && m.Health != Healthy && !pod.gone() && o.replaceRequested(m) {
			away, reason = true, RemoveReplaced
		}
		switch {
		case away && o.knowsLearners() && o.blocksJoining() != m:
			continue
		case away && o.joining() != nil:
			return removeVoter(o, m, reason), true
		case away:
			return o.awaitPrepared(), true
		case !pod.gone():
			continue
		}
		if o.pvc(m.Name) != nil {
			if plan, leads := o.handOver(m); leads {
				return plan, true
			}
			return wait(recheckWaiting, ReasonWaitingForPod,
				"pod "+m.Name+" is being deleted and is created again with its PVC",
				noActionNeeded+" "+diagnosis.ConfirmNodeOff), true
		}
		if o.joining() == nil {
			return o.awaitPrepared(), true
		}
		return removeVoter(o, m, RemoveLost), true
	}
	return Plan{}, false
}
