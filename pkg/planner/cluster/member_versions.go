// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
)

// memberVersions is what shows which version of etcd each member runs: its response, the last
// status, its pod and its PVC.
type memberVersions struct {
	now      time.Time
	members  []Member
	reported []v1beta2.MemberStatus
	pods     []Pod
	pvcs     []PVC
	// desired is the version in the spec.
	desired string
}

func versionsOf(o *Observed) memberVersions {
	return memberVersions{now: o.Now, members: o.Etcd.Members, reported: o.Cluster.Status.MemberStatuses, pods: o.Pods, pvcs: o.PVCs, desired: o.Cluster.Spec.Version}
}

// runs returns the version that a member says it runs, or last said; if it never
// said one, the version that its pod was made for. It is nil if nothing is known.
func (v memberVersions) runs(m *Member) *version.Version {
	if says := v.tagged(m, m.Version); says != nil {
		return says
	}
	if s := reportedMember(v.reported, m); s != nil {
		if said := v.tagged(m, s.Version); said != nil {
			return said
		}
	}
	if p := podByName(v.pods, m.Name); p != nil {
		return parse(p.Version)
	}
	return nil
}

// tagged returns what a member says or said with the tag of its image: that of its pod, its PVC or the spec, whichever is
// first of that release of etcd. Only the tag finds the image again. It is nil if the member says nothing.
func (v memberVersions) tagged(m *Member, says string) *version.Version {
	said := parse(says)
	for _, made := range []*version.Version{podVersion(podByName(v.pods, m.Name)), pvcVersion(pvcByName(v.pvcs, m.Name)), parse(v.desired)} {
		if isSameRelease(said, made) {
			return made
		}
	}
	return said
}

// lowest returns the lowest version that a member runs, or nil if none is known. An
// unresponsive member counts. It may run an older patch release since it last reported its
// version: its data is of that version.
func (v memberVersions) lowest() *version.Version {
	var low *version.Version
	for i := range v.members {
		m := &v.members[i]
		low = oldest(low, v.runs(m))
		if p := podByName(v.pods, m.Name); m.Version == "" && (p == nil || !p.Unstarted) {
			low = oldest(low, podVersion(p), pvcVersion(pvcByName(v.pvcs, m.Name)))
		}
	}
	return low
}

// lowestRun is the lowest version that is known to run, or to have run last; nil if none is
// known. What a volume, or a pod that was not started yet, was made for is a plan: it counts
// when decisions are made, and is not told as what runs.
func (v memberVersions) lowestRun() *version.Version {
	var low *version.Version
	for i := range v.members {
		m := &v.members[i]
		if says := v.tagged(m, m.Version); says != nil {
			low = oldest(low, says)
			continue
		}
		if s := reportedMember(v.reported, m); s != nil {
			low = oldest(low, v.tagged(m, s.Version))
		}
		if p := podByName(v.pods, m.Name); p != nil && !p.Unstarted {
			low = oldest(low, podVersion(p))
		}
	}
	return low
}

// mayRun returns the newest version that a member may run by now. A member that responds
// restarts as soon as the kubelet sees the version of its pod. An unresponsive member may
// have run that version, or the version of its PVC, although no status reports it. A container
// that has run for long runs what it says, whatever the tag of its image is.
func (v memberVersions) mayRun(m *Member) *version.Version {
	has, p := v.runs(m), podByName(v.pods, m.Name)
	if m.Version != "" && p != nil && hasSettled(v.now, p) {
		return has
	}
	if p != nil && p.Unstarted {
		return newest(has, parse(p.RanBefore))
	}
	has = newest(has, podVersion(p))
	if m.Version == "" {
		has = newest(has, pvcVersion(pvcByName(v.pvcs, m.Name)))
	}
	return has
}

// isLeftBehind is true if no member is left that keeps the cluster at the minor version
// of target, so that there is no way back to it.
func (v memberVersions) isLeftBehind(target *version.Version) bool {
	for i := range v.members {
		has := v.mayRun(&v.members[i])
		if has == nil || has.Minor() <= target.Minor() {
			return false
		}
	}
	return true
}

// withObjects leaves out the members that have neither a pod nor a PVC. Without a quorum such a member
// is known from the last status only. An API that was brought back may name one that was removed
// before the others took a newer version.
func (v memberVersions) withObjects() memberVersions {
	v.members = slices.DeleteFunc(slices.Clone(v.members), func(m Member) bool {
		return podByName(v.pods, m.Name) == nil && pvcByName(v.pvcs, m.Name) == nil
	})
	return v
}

// unsafeReturn says which newer minor version a member may run that must not follow target, and
// which patch release of target's minor version it may follow. An upgrade that is taken back
// leads to that patch release first.
func (v memberVersions) unsafeReturn(target *version.Version) (ahead *version.Version, patch validation.SafePatch, ok bool) {
	for i := range v.members {
		ahead = newest(ahead, v.mayRun(&v.members[i]))
	}
	if ahead == nil {
		return nil, patch, false
	}
	patch, ok = tooEarly(target, ahead)
	return ahead, patch, ok
}
