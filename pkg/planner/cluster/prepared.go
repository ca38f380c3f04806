// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// missing is how many members must be added. The pods of all of them are prepared
// together; the members are added one after the other. A voter without its pod and its
// data is already missing. So is the successor of a voter on a cordoned node.
func (o *Observed) missing() int {
	if !o.bootstrapped() {
		return max(0, o.size()-1)
	}
	have := 0
	for i := range o.Etcd.Members {
		if !o.isLost(&o.Etcd.Members[i]) {
			have++
		}
	}
	return max(0, o.size()+o.room()-have)
}

// isLost is true for a member whose pod and data no longer exist.
func (o *Observed) isLost(m *Member) bool {
	return o.pod(m.Name).gone() && o.pvc(m.Name) == nil && !o.admissible(m)
}

// usable is true for a prepared pod that will wait for a member as it is declared now.
func (o *Observed) usable(p *Pod) bool {
	switch {
	case p.gone(), p.Running && o.overdue(p), o.stale(p), o.persistent() != (o.preparedPVC(p.Name) != nil):
		return false
	case !p.Running && o.Now.Sub(p.Made) > preparedPatience:
		return false
	case o.joinVersion() != "":
		return sameVersion(p.Version, parse(o.joinVersion()))
	default:
		return !o.otherImage(p)
	}
}

// waits is true for a prepared pod in which nothing but the membership is missing.
func (o *Observed) waits(p *Pod) bool {
	return p != nil && !p.gone() && p.Running
}

// joining returns the prepared pod whose member is added next; nil if none waits yet.
func (o *Observed) joining() *Pod {
	for i := range o.Prepared {
		if p := &o.Prepared[i]; o.waits(p) && o.usable(p) && o.member(p.Name) == nil {
			return p
		}
	}
	return nil
}

// admissible is true for a member whose prepared pod still waits and has its volume. If the
// PVC was deleted, the pod must not start: the volume goes with the pod.
func (o *Observed) admissible(m *Member) bool {
	return !o.prepared(m.Name).gone() && (!o.persistent() || o.pvc(m.Name) != nil || o.preparedPVC(m.Name) != nil)
}

// admit lets etcd start in the prepared pod of a member that was added.
func (o *Observed) admit(m *Member) AdmitPod {
	return AdmitPod{Name: m.Name, UID: o.prepared(m.Name).UID, Peers: o.peerNames()}
}

// awaitPrepared waits for the pod of the next member. upkeepPrepared makes it.
func (o *Observed) awaitPrepared() Plan {
	message := "the pod of the next member is being created"
	for i := range o.Prepared {
		if p := &o.Prepared[i]; o.usable(p) && o.member(p.Name) == nil {
			message = "pod " + p.Name + " of the next member does not run yet" + waitingFor(p)
			break
		}
	}
	return wait(recheckWaiting, ReasonWaitingForPod, message, noActionNeeded)
}
