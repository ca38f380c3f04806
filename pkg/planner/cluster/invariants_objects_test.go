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
		if d.Why == DeletePrepared {
			if wrong := f.deletesPrepared(d); wrong != "" {
				return wrong
			}
			continue
		}
		i := f.podIndex(d.Name)
		if i < 0 || f.Pods[i].UID != d.UID {
			return "deletes pod " + d.Name + ", which is not there or not ours"
		}
		m := f.memberNamed(d.Name)
		c := f.pvcIndex(d.Name)
		kept := c >= 0 && !f.PVCs[c].Terminating
		switch {
		case removes(p, d.Name):
		case m == nil && f.Etcd.Linearizable:
		case d.Why == DeleteBootstrapPod && !f.born && !f.Pods[i].Running:
		case f.Pods[i].Finished && (kept || !f.born):
		case c < 0 && !f.Pods[i].Running && d.Why == DeleteWithoutPVC && isPersistent(f.Cluster):
		case f.Cluster.Spec.Replicas != nil && *f.Cluster.Spec.Replicas == 0 && kept:
		case isDrain(d) && m != nil && f.mayLeave(m, i):
		default:
			return "deletes pod " + d.Name + " of a member"
		}
	}
	return ""
}

// mayLeave: a surplus voter that no clients are led to and that does not lead may stop
// while the others are a quorum.
func (f *facts) mayLeave(m *Member, pod int) bool {
	others := f.serving
	if f.serves(m) {
		others--
	}
	return f.Etcd.Linearizable && !m.Learner && f.voters > int(*f.Cluster.Spec.Replicas) && f.ledBy() != m.ID &&
		f.Pods[pod].Role == PodDraining && !f.Pods[pod].InEndpoints && isMajority(others, f.voters)
}

func removes(p Plan, name string) bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool {
		r, ok := a.(RemoveMember)
		return ok && r.Name == name
	})
}

func checkDeletePVC(f *facts, p Plan) string {
	for _, a := range p.Actions {
		var name, uid string
		switch a := a.(type) {
		case DeletePVC:
			if a.Why == DeletePVCPrepared {
				if !slices.ContainsFunc(f.PreparedPVCs, func(c PVC) bool { return c.Name == a.Name && c.UID == a.UID }) || f.pvcIndex(a.Name) >= 0 {
					return "deletes the PVC " + a.Name + " as one that no member has used"
				}
				continue
			}
			name, uid = a.Name, a.UID
		case ReleasePVC:
			name, uid = a.Name, a.UID
		default:
			continue
		}
		i := f.pvcIndex(name)
		if i < 0 || f.PVCs[i].UID != uid {
			return "deletes PVC " + name + ", which does not exist or is not owned"
		}
		if !f.Etcd.Linearizable || (f.memberNamed(name) != nil && !removes(p, name)) {
			return "deletes PVC " + name + " of a member"
		}
	}
	return ""
}

// deletesPrepared: a prepared pod goes only if no member of the list waits for it.
func (f *facts) deletesPrepared(d DeletePod) string {
	i := slices.IndexFunc(f.Prepared, func(p Pod) bool { return p.Name == d.Name && p.UID == d.UID })
	switch {
	case i < 0 || f.podIndex(d.Name) >= 0:
		return "deletes pod " + d.Name + " as one that no member has used"
	case f.memberNamed(d.Name) != nil && !f.Prepared[i].Finished && !f.Prepared[i].Terminating && *f.Cluster.Spec.Replicas > 0:
		return "deletes the pod that member " + d.Name + " waits for"
	default:
		return ""
	}
}

// checkPrepared: a member is added only for a prepared pod that runs, and no more pods
// are prepared than members are missing.
func checkPrepared(f *facts, p Plan) string {
	for _, a := range p.Actions {
		switch a := a.(type) {
		case AddMember:
			i := slices.IndexFunc(f.Prepared, func(p Pod) bool { return p.Name == a.Name && p.UID == a.UID })
			if i < 0 || !f.Prepared[i].Running || f.Prepared[i].Terminating || f.Prepared[i].Finished {
				return "adds member " + a.Name + " although no pod waits for it"
			}
			c := slices.IndexFunc(f.PreparedPVCs, func(c PVC) bool { return c.Name == a.Name && !c.Terminating })
			if isPersistent(f.Cluster) != (c >= 0) {
				return "adds member " + a.Name + " without its volume"
			}
		case AdmitPod:
			added := slices.ContainsFunc(p.Actions, func(b Action) bool { add, is := b.(AddMember); return is && add.Name == a.Name })
			if !added && f.memberNamed(a.Name) == nil {
				return "admits pod " + a.Name + ", which is no member"
			}
		case PreparePod:
			waiting := 0
			for i := range f.Prepared {
				if f.memberNamed(f.Prepared[i].Name) == nil && !f.Prepared[i].Terminating && !f.Prepared[i].Finished && f.Prepared[i].Template == testTemplate {
					waiting++
				}
			}
			if waiting > int(*f.Cluster.Spec.Replicas) {
				return "prepares more pods than there are members"
			}
			if f.memberNamed(a.Name) != nil || f.podIndex(a.Name) >= 0 || f.pvcIndex(a.Name) >= 0 {
				return "prepares a pod under the name of a member"
			}
		}
	}
	return ""
}

// checkCreatePod: a pod is made for a member that has its data. A member that has lost
// its data must never run again.
func checkCreatePod(f *facts, p Plan) string {
	for _, a := range p.Actions {
		c, ok := a.(CreatePod)
		if !ok {
			continue
		}
		added := slices.ContainsFunc(p.Actions, func(a Action) bool {
			add, ok := a.(AddMember)
			return ok && add.Name == c.Name && (add.As == JoinAsVoter) != c.Learner
		})
		i := f.pvcIndex(c.Name)
		kept := i >= 0 && !f.PVCs[i].Terminating
		if !added && !kept {
			return "creates pod " + c.Name + " of a member without data"
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
				return fmt.Sprintf("pod %s has the peers %v", c.Name, c.Peers)
			}
		}
	}
	return ""
}
