// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/lru"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// knowsLearners is true if every member whose version is known knows learners, and
// one that joins now will.
func (o *Observed) knowsLearners() bool {
	joins := o.joinVersion()
	if joins == "" {
		joins = o.Cluster.Spec.Version
	}
	if !resources.HasLearners(joins) {
		return false
	}
	for i := range o.Etcd.Members {
		if v := o.runs(&o.Etcd.Members[i]); v != nil && !resources.HasLearners(v.String()) {
			return false
		}
	}
	return true
}

// knownVersions holds versions that were read before: one decision reads the same few hundreds
// of times. Nothing changes a version after it was read.
var knownVersions = lru.New(256)

// parse returns nil for a version that is unknown or cannot be read; validation
// keeps the latter out of specs.
func parse(v string) *version.Version {
	if v == "" {
		return nil
	}
	if value, found := knownVersions.Get(v); found {
		if known, ok := value.(*version.Version); ok {
			return known
		}
	}
	parsed, err := version.ParseSemantic(strings.TrimPrefix(v, "v"))
	if err != nil {
		return nil
	}
	knownVersions.Add(v, parsed)
	return parsed
}

// runs returns the version that a member says it runs, or last said; if it never
// said one, the version that its pod was made for. It is nil if nothing is known.
func (o *Observed) runs(m *Member) *version.Version {
	if v := parse(m.Version); v != nil {
		return v
	}
	if s := o.lastMemberStatus(m); s != nil {
		if v := parse(s.Version); v != nil {
			return v
		}
	}
	if p := o.pod(m.Name); p != nil {
		return parse(p.Version)
	}
	return nil
}

// lowest returns the lowest version that a member runs, or nil if none is known. An
// unresponsive member counts. It may run an older patch release since it last reported its
// version: its data is of that version.
func (o *Observed) lowest() *version.Version {
	var low *version.Version
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		low = oldest(low, o.runs(m))
		if p := o.pod(m.Name); m.Version == "" && (p == nil || !p.Unstarted) {
			low = oldest(low, p.version(), o.pvc(m.Name).version())
		}
	}
	return low
}

// lowestRun is the lowest version that is known to run, or to have run last; nil if none is
// known. What a volume, or a pod that was not started yet, was made for is a plan: it counts
// when decisions are made, and is not told as what runs.
func (o *Observed) lowestRun() *version.Version {
	var low *version.Version
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if v := parse(m.Version); v != nil {
			low = oldest(low, v)
			continue
		}
		if s := o.lastMemberStatus(m); s != nil {
			low = oldest(low, parse(s.Version))
		}
		if p := o.pod(m.Name); p != nil && !p.Unstarted {
			low = oldest(low, p.version())
		}
	}
	return low
}

// step is true if a cluster of version low may be moved to target: etcd moves up one
// minor version at a time.
func step(low, target *version.Version) bool {
	return target.Major() == low.Major() && target.Minor() >= low.Minor() && target.Minor() <= low.Minor()+1
}

func newest(versions ...*version.Version) *version.Version {
	var result *version.Version
	for _, v := range versions {
		if v != nil && (result == nil || result.LessThan(v)) {
			result = v
		}
	}
	return result
}

func oldest(versions ...*version.Version) *version.Version {
	var result *version.Version
	for _, v := range versions {
		if v != nil && (result == nil || v.LessThan(result)) {
			result = v
		}
	}
	return result
}

// version returns what the pod was made for, or nil.
func (p *Pod) version() *version.Version {
	if p == nil {
		return nil
	}
	return parse(p.Version)
}

// version returns what was last to run on the volume, or nil.
func (c *PVC) version() *version.Version {
	if c == nil {
		return nil
	}
	return parse(c.Version)
}

// mayRun returns the newest version that a member may run by now. A member that responds
// restarts as soon as the kubelet sees the version of its pod. An unresponsive member may
// have run that version, or the version of its PVC, although no status reports it.
func (o *Observed) mayRun(m *Member) *version.Version {
	has, p := o.runs(m), o.pod(m.Name)
	if p == nil || !p.Unstarted {
		has = newest(has, p.version())
		if m.Version == "" {
			has = newest(has, o.pvc(m.Name).version())
		}
	}
	return has
}

// leftBehind is true if no member is left that keeps the cluster at the minor version
// of target, so that there is no way back to it.
func (o *Observed) leftBehind(target *version.Version) bool {
	for i := range o.Etcd.Members {
		has := o.mayRun(&o.Etcd.Members[i])
		if has == nil || has.Minor() <= target.Minor() {
			return false
		}
	}
	return true
}

// tooEarly says which patch release members must run before the step to another minor
// version; ok is false if the one that they run will do.
func tooEarly(low, target *version.Version) (patch validation.SafePatch, ok bool) {
	if target.Minor() <= low.Minor() {
		return patch, false
	}
	patch, bound := validation.SafePatchOf(uint64(low.Minor()))
	return patch, bound && low.LessThan(parse(patch.Version))
}

// unsafeReturn says which newer minor version a member may run that must not follow target, and
// which patch release of target's minor version it may follow. An upgrade that is taken back
// leads to that patch release first.
func (o *Observed) unsafeReturn(target *version.Version) (ahead *version.Version, patch validation.SafePatch, ok bool) {
	for i := range o.Etcd.Members {
		ahead = newest(ahead, o.mayRun(&o.Etcd.Members[i]))
	}
	if ahead == nil {
		return nil, patch, false
	}
	patch, ok = tooEarly(target, ahead)
	return ahead, patch, ok
}

// mayStep is true if members that run low may be joined by ones that run target.
func (o *Observed) mayStep(low, target *version.Version) bool {
	_, early := tooEarly(low, target)
	_, _, unsafe := o.unsafeReturn(target)
	return step(low, target) && !early && !unsafe && !o.leftBehind(target) && !o.logBars(low, target)
}

// joinVersion returns the version for a member that is new: the declared one, unless
// that would be a step that the others may not take. Where there is no way back it is what
// the last of the others may run by now, not what it ran before.
func (o *Observed) joinVersion() string {
	target, low := parse(o.Cluster.Spec.Version), o.lowest()
	if target == nil || low == nil || o.mayStep(low, target) {
		return ""
	}
	if o.leftBehind(target) {
		low = nil
		for i := range o.Etcd.Members {
			low = oldest(low, o.mayRun(&o.Etcd.Members[i]))
		}
	}
	return o.pinned(low)
}

// pinned returns a version for CreatePod; empty if it is the declared one or unknown.
func (o *Observed) pinned(v *version.Version) string {
	if v == nil || sameVersion(o.Cluster.Spec.Version, v) {
		return ""
	}
	return v.String()
}

// rejectStep says why the members may not be brought from their versions to target; ok
// is false if they may.
func (o *Observed) rejectStep(low, target *version.Version) (plan Plan, ok bool) {
	if !step(low, target) || o.leftBehind(target) {
		return wait(recheckSteady, ReasonVersionStep,
			fmt.Sprintf("members run %s and %s is declared: etcd moves up one minor version at a time", low, target),
			fmt.Sprintf("Set spec.version to a version of %d.%d or %d.%d.", low.Major(), low.Minor(), low.Major(), low.Minor()+1)), true
	}
	if patch, early := tooEarly(low, target); early {
		return wait(recheckSteady, ReasonVersionStep,
			fmt.Sprintf("members run %s and %s is declared: before %s, %s", low, target, patch.Version, patch.Because),
			fmt.Sprintf("Set spec.version to %s or a later %d.%d first.", patch.Version, low.Major(), low.Minor())), true
	}
	if ahead, patch, unsafe := o.unsafeReturn(target); unsafe {
		return wait(recheckSteady, ReasonVersionStep,
			fmt.Sprintf("a member may run %s and %s is declared: before %s, %s", ahead, target, patch.Version, patch.Because),
			fmt.Sprintf("Set spec.version to %s or a later %d.%d first.", patch.Version, target.Major(), target.Minor())), true
	}
	if o.logBars(low, target) {
		return o.prepareLog(low), true
	}
	return Plan{}, false
}

func sameVersion(v string, target *version.Version) bool {
	parsed := parse(v)
	return parsed != nil && parsed.EqualTo(target)
}
