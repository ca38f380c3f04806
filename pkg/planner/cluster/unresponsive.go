// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// repairUnresponsive restarts one member that runs, does not respond, and is not what is declared now. A
// declaration such as another --cipher-suites may have made it so. Without a member list, or while too few
// voters serve for a rollout, the corrected declaration reaches it in no other way. Its data stays: on its PVC,
// or in the pod if only the image changes.
//
// It may vote for members that serve clients although the controller does not reach them. So Kubernetes must
// report that the other voters are ready and a quorum, unless they serve as one. Without a member list, none of
// them may be ready, too. Where the voters that remain without it can be no quorum, its restart is an outage
// in any case: no other step goes on before it serves. That is so with two voters, and with three if one is lost. One
// member restarts at a time: every other member has had the time to respond since its container started.
func repairUnresponsive(o *Observed, target *version.Version, rejected bool) (actions []Action, draining string) {
	unread := !o.Etcd.Linearizable
	if o.Etcd.Denied || o.Etcd.Unasked || unread && unreadFor(o.Cluster.Status.Conditions, o.Now) < unresponsiveFor || awaitsResponse(o) {
		return nil, ""
	}
	if unread && slices.ContainsFunc(o.Etcd.Members, func(m Member) bool { return responseOf(&m) == diagnosis.FollowsLeader }) {
		return nil, ""
	}
	var chosen *Member
	var how RestartMode
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		pod := podByName(o.Pods, m.Name)
		if m.Unmanaged || isGone(pod) || !pod.Running || responseOf(m) != diagnosis.NoResponse {
			continue
		}
		mode, may := modeOfUnresponsive(o, m)
		if !may {
			continue
		}
		barred := rejected || isNewToMember(o, m, pod, target)
		if c := changeDueUnrequested(o, m); c != recreate && (c != reimage || barred) || c == recreate && awaitsVersion(o, m) {
			continue
		}
		if chosen == nil || podByName(o.Pods, chosen.Name).Ready && !pod.Ready {
			chosen, how = m, mode
		}
	}
	if chosen == nil {
		return nil, ""
	}
	barred := rejected || isNewToMember(o, chosen, podByName(o.Pods, chosen.Name), target)
	return []Action{renew(o, chosen, target, !barred, how)}, chosen.Name
}

// modeOfUnresponsive says how a member restarts; false if it may not. Without a quorum of the others its restart ends
// none, as far as Kubernetes knows. With one this is what the rollout would do. But the rules before the rollout, which add
// and remove members, wait until this very member serves, and so does the rollout itself if it leads.
func modeOfUnresponsive(o *Observed, m *Member) (RestartMode, bool) {
	ready, quorum, others := countReadyWithout(o, m), diagnosis.Quorum(len(listVoters(o.Etcd.Members))), countRemainingWithout(o, m)
	switch {
	case !o.Etcd.Linearizable:
		return RestartUnresponsive, ready == 0 && len(listUnmanaged(o.Etcd.Members)) == 0 || others < quorum || ready >= quorum
	case m.Learner || !isLongUnresponsive(o, m):
		return "", false
	}
	switch outage, _, waits := awaitQuorumWithout(o, m); {
	case waits:
		return RestartUnresponsive, ready >= quorum || others < quorum && ready >= others
	case outage:
		return RestartWithOutage, !isOneRestarting(o)
	default:
		return RestartRolling, !isOneRestarting(o)
	}
}

// isOneRestarting is true while a member restarts, or is about to.
func isOneRestarting(o *Observed) bool {
	_, restarts := awaitRestarts(o, true)
	return restarts
}

// lowersMinor is true for a pod that would be made again with an older minor version than it has, or with one that
// cannot be compared.
func lowersMinor(o *Observed, pod *Pod) bool {
	target, has := parse(o.Cluster.Spec.Version), parse(pod.Version)
	return target == nil || has == nil || target.Minor() < has.Minor()
}

// repairBootstrapMember restarts a bootstrap member that runs, has not responded for a minute, and is not what is
// declared now. It goes on with the data on its PVC under the same name and token, so it is the same member. Without a PVC
// its data would go, and with an older minor version it might not read that data.
func repairBootstrapMember(o *Observed, pod *Pod, outdated bool) (Action, bool) {
	b, m := o.Cluster.Status.BlockedBy, memberByName(o.Etcd.Members, pod.Name)
	switch {
	case pod.Terminating, !pod.Running, isFresh(o.Now, pod), !outdated && !declarationOf(o).isStale(pod):
		return nil, false
	case o.Etcd.Denied, o.Etcd.Unasked, m != nil && responseOf(m) != diagnosis.NoResponse:
		return nil, false
	case pvcByName(o.PVCs, pod.Name) == nil, lowersMinor(o, pod):
		return nil, false
	case b == nil, b.Reason != string(ReasonWaitingForBootstrapMember), o.Now.Sub(b.Since.Time) < unresponsiveFor:
		return nil, false
	default:
		return RecreatePod{Name: pod.Name, UID: pod.UID, Version: pod.Version, Mode: RestartUnresponsive}, true
	}
}

// countReadyWithout counts the voters that Kubernetes reports as ready, leaving m out. It reports nothing of an
// unmanaged voter.
func countReadyWithout(o *Observed, m *Member) int {
	ready := 0
	for _, other := range listVoters(o.Etcd.Members) {
		if pod := podByName(o.Pods, other.Name); other != m && !other.Unmanaged && !isGone(pod) && pod.Ready {
			ready++
		}
	}
	return ready
}

// countRemainingWithout counts the voters that may serve while m restarts: all but those whose pod and data no longer
// exist.
func countRemainingWithout(o *Observed, m *Member) int {
	remaining := 0
	for _, other := range listVoters(o.Etcd.Members) {
		if other != m && (other.Unmanaged || !isLost(o, other)) {
			remaining++
		}
	}
	return remaining
}

// awaitsResponse is true while a member may be about to respond, or is about to end. A pod on a node that does
// not report stays for as long as the node object exists, so it is not waited for after the time to end.
func awaitsResponse(o *Observed) bool {
	return slices.ContainsFunc(o.Etcd.Members, func(m Member) bool {
		pod := podByName(o.Pods, m.Name)
		if pod == nil || responseOf(&m) != diagnosis.NoResponse {
			return false
		}
		return pod.Terminating && o.Now.Before(pod.EndsBy.Add(unresponsiveFor)) || !pod.Terminating && isFresh(o.Now, pod)
	})
}

// isFresh is true for a pod whose container may not have had the time to respond yet.
func isFresh(now time.Time, p *Pod) bool {
	since := p.Made
	if p.Started.After(since) {
		since = p.Started
	}
	return p.Restarting || !since.IsZero() && now.Sub(since) < unresponsiveFor
}

// isLongUnresponsive is true for a member that does not respond, and has not served for long. It can
// transfer no leadership. The others elect another leader when it stops.
func isLongUnresponsive(o *Observed, m *Member) bool {
	return responseOf(m) == diagnosis.NoResponse && notServedFor(o.Cluster.Status.Conditions, o.Now, m) >= unresponsiveFor
}
