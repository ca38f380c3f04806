// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// A declaration may name a minor version together with flags that only this version knows. A pod that is made before its
// member may run that version has the declared flags and the version before, and etcd ends at a flag that it does not
// know. So members that serve, or may start as they were, get both together.

// isSplit is true while the log is prepared for the declared minor version, and a pod that runs was made from another
// declaration. A log is prepared only while every member serves.
func isSplit(o *Observed) bool {
	if !preparesLog(o) {
		return false
	}
	d := declarationOf(o)
	return slices.ContainsFunc(o.Pods, func(p Pod) bool { return p.Owned && !isGone(&p) && d.isOther(&p) })
}

// preparesLog is true while nothing but entries in the log keeps the members from the declared minor version.
func preparesLog(o *Observed) bool {
	u := upgradePathOf(o)
	target, low := parse(o.Cluster.Spec.Version), u.lowest()
	return target != nil && low != nil && u.isSafeStep(low, target) && u.logBars(low, target)
}

// awaitsVersion is true for a voter whose pod stays as it is until its member may run the declared minor version: after the
// log is prepared, or after a quorum is back. It serves, or Kubernetes names nothing that keeps it from starting. After
// diagnosis.ReturnGrace it counts as a member that the last declaration may have stopped.
func awaitsVersion(o *Observed, m *Member) bool {
	pod, target := podByName(o.Pods, m.Name), parse(o.Cluster.Spec.Version)
	if target == nil || isGone(pod) || !declarationOf(o).isOther(pod) {
		return false
	}
	if made := parse(pod.Version); made == nil || made.Minor() >= target.Minor() || !isNewToMember(o, m, pod, target) && !preparesLog(o) {
		return false
	}
	if m.Health == Healthy {
		return true
	}
	down := notServedFor(o.Cluster.Status.Conditions, o.Now, m)
	if !o.Etcd.Linearizable {
		down = unreadFor(o.Cluster.Status.Conditions, o.Now)
	}
	return (pod.Running || pod.Waiting == "") && down < diagnosis.ReturnGrace
}

// isNewToMember is true without a quorum for a minor version that neither the pod was made for nor the member has run. Only a
// quorum takes members to another minor version, one after the other. Without one nothing shows that the first of
// them starts, and none of them would keep the way back.
func isNewToMember(o *Observed, m *Member, pod *Pod, target *version.Version) bool {
	same := func(v *version.Version) bool {
		return v != nil && v.Major() == target.Major() && v.Minor() == target.Minor()
	}
	return !o.Etcd.Linearizable && !same(parse(pod.Version)) && !same(versionsOf(o).runs(m))
}
