// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
)

// HasStarted is true if a member of this name has started: the member list says so, the list of one member,
// the last status or the record. Then its pod and its PVC may hold its data, whatever their annotations say. If
// Kubernetes is restored from a backup of its own etcd, a pod that waited for its membership when that backup was made
// says so again, and the member in it serves.
func HasStarted(o *Observed, name string) bool {
	if m := memberByName(o.Etcd.Members, name); o.Etcd.Linearizable && m != nil {
		return m.Started && !m.Unmanaged // a status is older than this list
	}
	started := func(m Member) bool { return m.Name == name && m.Started && !m.Unmanaged }
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if started(*m) || m.View != nil && slices.ContainsFunc(m.View.Members, started) {
			return true
		}
	}
	for i := range o.Cluster.Status.MemberStatuses {
		if s := &o.Cluster.Status.MemberStatuses[i]; s.Name == name && !s.Unmanaged && hasReportedStart(s) {
			return true
		}
	}
	return o.Record.ClusterID != "" && o.Record.BootstrapMember == name
}

// TakeUpStarted makes the prepared pods and PVCs of members that have started those of their members. They
// are marked, so that their annotations are corrected.
func TakeUpStarted(o *Observed) {
	pod := func(p Pod) bool { return HasStarted(o, p.Name) }
	if slices.ContainsFunc(o.Prepared, pod) {
		pods := slices.Clone(o.Pods)
		for _, p := range o.Prepared {
			if pod(p) {
				p.Unadmitted = true
				pods = append(pods, p)
			}
		}
		o.Pods, o.Prepared = pods, slices.DeleteFunc(slices.Clone(o.Prepared), pod)
	}
	pvc := func(c PVC) bool { return HasStarted(o, c.Name) }
	if slices.ContainsFunc(o.PreparedPVCs, pvc) {
		pvcs := slices.Clone(o.PVCs)
		for _, c := range o.PreparedPVCs {
			if pvc(c) {
				c.Unadmitted = true
				pvcs = append(pvcs, c)
			}
		}
		slices.SortFunc(pvcs, func(a, b PVC) int { return cmp.Compare(a.Name, b.Name) })
		o.PVCs, o.PreparedPVCs = pvcs, slices.DeleteFunc(slices.Clone(o.PreparedPVCs), pvc)
	}
}
