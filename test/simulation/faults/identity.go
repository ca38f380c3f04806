// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// unmanagedNames are names that members may have which another program adds; etcd takes any.
var unmanagedNames = []string{"", "foreign", schedules.ClusterName + "-same", "\x1b[31m\n", "1"}

// addUnmanaged has a person add a member with etcdctl, to a cluster that keeps its quorum.
func (w *World) addUnmanaged(e schedules.Event) {
	p := w.settledMember()
	if p == nil || p.Dir.Lineage.Members.Voters() < 3 {
		return
	}
	name := unmanagedNames[e.A%len(unmanagedNames)]
	if err := w.Etcd.AddUnmanaged(p, name, e.B%3 == 0); err != nil {
		w.Trace("etcdctl member add %q: %v", name, err)
	}
}

// settledMember returns a member of the cluster if all its members serve; nil otherwise.
func (w *World) settledMember() *simetcd.Process {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return nil
	}
	for _, p := range w.Etcd.Processes {
		l := p.Dir.Lineage
		if l.Owner != string(cluster.UID) || !w.Checks.Matters(l) || l.Members.Unsettled() > 0 || !p.Leads() {
			continue
		}
		for i := range l.Members.Peers {
			if m := w.Etcd.Member(l, l.Members.Peers[i].Id); m == nil || !w.Etcd.IsReady(m) {
				return nil
			}
		}
		return p
	}
	return nil
}

// removal finds the ID of a member in what the status says that a person must do.
var removal = regexp.MustCompile(`member remove ([0-9a-f]+)`)

// removeUnmanaged is a person that removes the member which the status names.
func (w *World) removeUnmanaged(remediation string) {
	named := removal.FindStringSubmatch(remediation)
	if named == nil {
		return
	}
	id, err := strconv.ParseUint(named[1], 16, 64)
	if err != nil {
		return
	}
	for _, p := range w.Etcd.Processes {
		if l := p.Dir.Lineage; !l.IsOfOthers() && p.Leads() && l.Members.Find(id) != nil {
			w.Trace("a person removes member %x: %v", id, w.Etcd.Remove(p, id))
			return
		}
	}
}

// leadElsewhere has the address of a pod lead to the member of another cluster. That happens after a pod has ended,
// while the cache of the controller does not show the end yet.
func (w *World) leadElsewhere(e schedules.Event) {
	other, err := w.Etcd.StartOther(w.Plan.Version)
	if err != nil {
		w.Violated("L1", "another etcd does not start: %v", err)
		return
	}
	pod := w.AnyPod(e.A)
	if pod == nil {
		return
	}
	ip := pod.Status.PodIP
	if ip == "" || pod.Status.Phase != corev1.PodRunning {
		return
	}
	w.Etcd.Elsewhere[ip] = other
	w.After(e.For, func() { delete(w.Etcd.Elsewhere, ip); w.Disturb() })
}
