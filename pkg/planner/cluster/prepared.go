// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
	"time"
)

// preparedPatience is how long a prepared pod may take until it waits for its member.
// After that another one takes its place, with another volume: the volume of the first
// one may be tied to a node that does not come back.
const preparedPatience = 10 * time.Minute

// missing is how many members must be added. The pods of all of them are prepared
// together; the members are added one after the other. A voter whose pod is gone
// together with its data is missing already.
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
	return max(0, o.size()+o.surge()-have)
}

// isLost is true for a member whose pod and data no longer exist.
func (o *Observed) isLost(m *Member) bool {
	return o.pod(m.Name).gone() && o.claim(m.Name) == nil && !o.admissible(m)
}

// prepared returns the prepared pod called name, or nil.
func (o *Observed) prepared(name string) *Pod {
	for i := range o.Prepared {
		if o.Prepared[i].Name == name {
			return &o.Prepared[i]
		}
	}
	return nil
}

// preparedClaim returns the PVC of a prepared pod, or nil.
func (o *Observed) preparedClaim(name string) *Claim {
	for i := range o.PreparedClaims {
		if c := &o.PreparedClaims[i]; c.Name == name && !c.Terminating {
			return c
		}
	}
	return nil
}

// usable is true for a prepared pod that will wait for a member as it is declared now.
func (o *Observed) usable(p *Pod) bool {
	switch {
	case p.gone(), o.stale(p), o.persistent() != (o.preparedClaim(p.Name) != nil):
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
	return !o.prepared(m.Name).gone() && (!o.persistent() || o.claim(m.Name) != nil || o.preparedClaim(m.Name) != nil)
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
	return wait(recheckWaiting, "WaitingForPod", message, "No action needed unless this persists.")
}

// upkeepPrepared keeps as many pods prepared as members are missing. It touches nothing
// that a member has used.
func upkeepPrepared(o *Observed, plan Plan) []Action {
	switch {
	case o.size() == 0:
		return o.drop(o.Prepared, o.PreparedClaims)
	case !o.Reseed.Pod.gone() && o.Reseed.Pod.Node == "" && o.Reseed.Pod.Waiting != "":
		// The first member of a recovery finds no node. Pods that only wait may be in its way,
		// by their requests or because each member needs a node of its own.
		return o.drop(o.Prepared, o.PreparedClaims)
	case plan.Rule == "recovery", !o.Etcd.Linearizable:
		return nil
	default:
		return o.prepare()
	}
}

// prepare makes one pod if too few are prepared, and deletes those that cannot be used
// or that are too many. It makes one at a time; the next observation makes the next.
func (o *Observed) prepare() []Action {
	var kept, dropped []Pod
	for _, p := range o.Prepared {
		switch {
		case o.member(p.Name) != nil && o.admissible(o.member(p.Name)): // about to be admitted
		case o.usable(&p):
			kept = append(kept, p)
		default:
			dropped = append(dropped, p)
		}
	}
	missing := o.missing()
	if len(kept) > missing {
		slices.SortStableFunc(kept, func(a, b Pod) int { return cmp.Compare(idle(&a), idle(&b)) })
		dropped = append(dropped, kept[missing:]...)
	}
	unused := o.unused()
	needed := min(len(unused), max(0, missing-len(kept)))
	actions := o.drop(dropped, unused[needed:])
	switch {
	case len(kept) >= missing:
		return actions
	case needed > 0:
		return append(actions, PreparePod{Name: unused[0].Name, Version: o.joinVersion()})
	default:
		return append(actions, PreparePod{Name: o.NewName, Version: o.joinVersion(), NewClaim: o.persistent()})
	}
}

// idle is 1 for a pod whose container does not run, and 0 otherwise.
func idle(p *Pod) int {
	if p.Running {
		return 0
	}
	return 1
}

// unused returns the PVCs that were made for a prepared pod that does not exist, because
// Kubernetes rejected it or because it was deleted.
func (o *Observed) unused() []Claim {
	var claims []Claim
	for _, c := range o.PreparedClaims {
		if !c.Terminating && o.prepared(c.Name) == nil && o.member(c.Name) == nil && o.pod(c.Name) == nil {
			claims = append(claims, c)
		}
	}
	return claims
}

// drop deletes prepared pods with their PVCs, and PVCs without pods.
func (o *Observed) drop(pods []Pod, claims []Claim) []Action {
	var actions []Action
	claims = slices.Clone(claims)
	for i := range pods {
		p := &pods[i]
		if !p.Terminating {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID, Prepared: true})
		}
		if c := o.preparedClaim(p.Name); c != nil && !slices.Contains(claims, *c) {
			claims = append(claims, *c)
		}
	}
	for _, c := range claims {
		if !c.Terminating {
			actions = append(actions, DeleteClaim{Name: c.Name, UID: c.UID, Prepared: true})
		}
	}
	return actions
}
