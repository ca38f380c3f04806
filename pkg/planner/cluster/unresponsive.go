// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// unresponsiveFor is for how long no member list could be read until a member that runs may restart
// because it does not respond. Kubernetes notices within that time that a node was cut off.
const unresponsiveFor = time.Minute

// repairUnresponsive restarts one member that runs, does not respond, and is not what is declared now. A
// declaration such as another --cipher-suites may have made it so. Without a member list, or while too few
// voters serve for a rollout, the corrected declaration reaches it in no other way. Its data stays: on its PVC,
// or in the pod if only the image changes.
//
// It may vote for members that serve clients although the controller does not reach them. So Kubernetes must
// report that the other voters are ready and a quorum. Without a member list, none of them may be ready, too. Of two
// voters the restart of one is an outage in any case. And one member restarts at a time: every other
// one has had the time to respond since its container started.
func repairUnresponsive(o *Observed, target *version.Version, rejected bool) []Action {
	unread := !o.Etcd.Linearizable
	if o.Etcd.Denied || o.Etcd.Unasked || unread && unreadFor(o.Cluster.Status.Conditions, o.Now) < unresponsiveFor || awaitsResponse(o) {
		return nil
	}
	if unread && slices.ContainsFunc(o.Etcd.Members, func(m Member) bool { return responseOf(&m) == diagnosis.FollowsLeader }) {
		return nil
	}
	var chosen *Member
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		pod := podByName(o.Pods, m.Name)
		if m.Unmanaged || isGone(pod) || !pod.Running || responseOf(m) != diagnosis.NoResponse || !mayRestartUnresponsive(o, m) {
			continue
		}
		if c := changeDueUnrequested(o, m); c != recreate && (c != reimage || rejected) {
			continue
		}
		if chosen == nil || podByName(o.Pods, chosen.Name).Ready && !pod.Ready {
			chosen = m
		}
	}
	if chosen == nil {
		return nil
	}
	return []Action{renew(o, chosen, target, !rejected, RestartUnresponsive)}
}

// mayRestartUnresponsive is true for a member whose restart ends no quorum, as far as Kubernetes knows.
func mayRestartUnresponsive(o *Observed, m *Member) bool {
	voters, ready := len(listVoters(o.Etcd.Members)), countReadyWithout(o, m)
	if !o.Etcd.Linearizable {
		return ready == 0 && len(listUnmanaged(o.Etcd.Members)) == 0 || voters <= 2 || ready >= diagnosis.Quorum(voters)
	}
	rolls := quorumOf(o).countServingWithout(m) >= diagnosis.Quorum(voters)
	return !rolls && !m.Learner && isLongUnresponsive(o, m) && ready >= diagnosis.Quorum(voters)
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

// isLongUnresponsive is true for a member that does not respond, if a voter has not served for long. It can
// transfer no leadership. The others elect another leader when it stops.
func isLongUnresponsive(o *Observed, m *Member) bool {
	degraded := reportedCondition(o.Cluster.Status.Conditions, v1beta2.ClusterConditionDegraded)
	return responseOf(m) == diagnosis.NoResponse && degraded.Status == corev1.ConditionTrue && sinceTransition(o.Now, degraded) >= unresponsiveFor
}
