// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
)

func checkDeletePod(f *facts, p Plan) string {
	for _, a := range p.Actions {
		d, ok := a.(DeletePod)
		if !ok {
			continue
		}
		i := f.podIndex(d.Name)
		if i < 0 || f.Pods[i].UID != d.UID {
			return "deletes pod " + d.Name + ", which is not there or not ours"
		}
		m := f.memberNamed(d.Name)
		c := f.claimIndex(d.Name)
		kept := c >= 0 && !f.Claims[c].Terminating
		switch {
		case removes(p, d.Name):
		case m == nil && f.Etcd.Linearizable:
		case d.Seed && !f.born && !f.Pods[i].Running:
		case f.Pods[i].Finished && (kept || !f.born):
		case c < 0 && !f.Pods[i].Running && d.Stranded && f.persistent():
		case f.Cluster.Spec.Replicas != nil && *f.Cluster.Spec.Replicas == 0 && kept:
		case d.Leaves && m != nil && f.mayLeave(m, i):
		default:
			return "deletes pod " + d.Name + " of a member"
		}
	}
	return ""
}

// mayLeave: a voter that nobody wants, that clients are not led to any more and that
// does not lead may stop while the others are a quorum.
func (f *facts) mayLeave(m *Member, pod int) bool {
	others := f.serving
	if f.serves(m) {
		others--
	}
	return f.Etcd.Linearizable && !m.Learner && f.voters > int(*f.Cluster.Spec.Replicas) && f.ledBy() != m.ID &&
		f.Pods[pod].Role == PodLeaving && !f.Pods[pod].Routed && majority(others, f.voters)
}

func removes(p Plan, name string) bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool {
		r, ok := a.(RemoveMember)
		return ok && r.Name == name
	})
}

func checkDeleteClaim(f *facts, p Plan) string {
	for _, a := range p.Actions {
		var name, uid string
		switch a := a.(type) {
		case DeleteClaim:
			name, uid = a.Name, a.UID
		case ReleaseClaim:
			name, uid = a.Name, a.UID
		default:
			continue
		}
		i := f.claimIndex(name)
		if i < 0 || f.Claims[i].UID != uid {
			return "drops claim " + name + ", which is not there or not ours"
		}
		if !f.Etcd.Linearizable || (f.memberNamed(name) != nil && !removes(p, name)) {
			return "drops claim " + name + " of a member"
		}
	}
	return ""
}

// checkCreatePod: a pod is made for a member that is new, or for one that has its
// data. A member that has lost its data must never run again.
func checkCreatePod(f *facts, p Plan) string {
	for _, a := range p.Actions {
		c, ok := a.(CreatePod)
		if !ok {
			continue
		}
		added := slices.ContainsFunc(p.Actions, func(a Action) bool {
			add, ok := a.(AddMember)
			return ok && add.Name == c.Name && add.Voter == !c.Learner
		})
		i := f.claimIndex(c.Name)
		kept := i >= 0 && !f.Claims[i].Terminating
		if !added && !kept {
			return "makes pod " + c.Name + " of a member whose data is gone"
		}
		if f.podIndex(c.Name) >= 0 {
			return "makes a second pod " + c.Name
		}
		if !slices.Contains(c.Peers, c.Name) {
			return "pod " + c.Name + " does not know itself"
		}
		if f.Etcd.Linearizable {
			want := len(f.Etcd.Members)
			if added {
				want++
			}
			if len(c.Peers) != want || (!added && f.memberNamed(c.Name) == nil) {
				return fmt.Sprintf("pod %s is told of %v", c.Name, c.Peers)
			}
		}
	}
	return ""
}
