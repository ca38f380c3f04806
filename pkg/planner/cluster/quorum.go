// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// quorum is what decides whether the voters serve: the member list, with the pods and PVCs that
// show whether a member comes back.
type quorum struct {
	members []Member
	pods    []Pod
	pvcs    []PVC
}

func quorumOf(o *Observed) quorum {
	return quorum{members: o.Etcd.Members, pods: o.Pods, pvcs: o.PVCs}
}

// stateOf returns the state of a member in the member list. Where no list could be read, it
// is the list of the last status.
func (q quorum) stateOf(m *Member) diagnosis.MemberState {
	pod := podByName(q.pods, m.Name)
	signs := diagnosis.Signs{Vote: diagnosis.Votes, Response: responseOf(m), Evidence: evidenceOf(pod), HasPVC: pvcByName(q.pvcs, m.Name) != nil}
	if m.Learner {
		signs.Vote = diagnosis.DoesNotVote
	}
	if m.Unmanaged {
		signs.Evidence = diagnosis.PodUnknown // no pod and no PVC of this cluster tells about it
	}
	if pod != nil {
		signs.Running, signs.Ready = pod.Running, pod.Ready
	}
	return diagnosis.StateOf(signs)
}

// countServing counts the voters that serve and whose pods are here to stay,
// leaving out the ones named.
func (q quorum) countServing(except ...*Member) int {
	n := 0
	for _, m := range listVoters(q.members) {
		if q.stateOf(m).IsServing() && !slices.Contains(except, m) {
			n++
		}
	}
	return n
}

// countServingUnmanaged counts the voters that another program runs and that serve.
func countServingUnmanaged(o *Observed) int {
	q, n := quorumOf(o), 0
	for _, m := range listVoters(o.Etcd.Members) {
		if m.Unmanaged && q.stateOf(m).IsServing() {
			n++
		}
	}
	return n
}

// countServingWithout counts the voters that serve when m does not. A voter that follows another leader
// than most voters may not reach their leader, and does not count when m goes.
func (q quorum) countServingWithout(m *Member) int {
	except, leader := []*Member{m}, findLeader(q.members)
	for _, other := range listVoters(q.members) {
		if leader != nil && other.Leader != leader.ID {
			except = append(except, other)
		}
	}
	return q.countServing(except...)
}

// startingTime is for how long after its pod was made a voter that does not serve is new.
const startingTime = time.Minute

// isStarting is true for a pod that is new.
func isStarting(now time.Time, p *Pod) bool { return p != nil && now.Sub(p.Made) < startingTime }

// findStarting returns a voter other than m that is new and does not serve yet, or nil. Its pod is ready before
// the member knows that it votes. Without it, the clients of m could not be sent away before m is
// removed. One that does not serve for longer is not waited for.
func (q quorum) findStarting(now time.Time, m *Member) *Member {
	for _, other := range listVoters(q.members) {
		if other != m && isStarting(now, podByName(q.pods, other.Name)) && !q.stateOf(other).IsServing() {
			return other
		}
	}
	return nil
}

// findUnready returns a voter other than m whose pod is not ready, or nil. Where the alarm NOSPACE makes the
// pods of members that serve unready, what ends the alarm does not wait for them. It makes that of m unready,
// too: while it has not, the other pod has another reason, such as its own start.
func (q quorum) findUnready(m *Member) *Member {
	own := podByName(q.pods, m.Name)
	full := len(listNoSpace(q.members)) > 0 && (resources.IsReadyWhileFull(m.Version) || isGone(own) || !own.Ready)
	for _, other := range listVoters(q.members) {
		if full && other.Health == Healthy && !resources.IsReadyWhileFull(other.Version) {
			continue
		}
		if pod := podByName(q.pods, other.Name); other != m && (isGone(pod) || !pod.Ready) {
			return other
		}
	}
	return nil
}
