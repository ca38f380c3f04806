// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/clients"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// severSome cuts the nodes of some pods off, most often of a majority.
func (w *World) severSome(e schedules.Event) {
	pods := w.Store.List(kubernetes.KindPod)
	count := 1 + e.B%(len(pods)+1)
	if e.B/16%4 > 0 {
		count = len(pods)/2 + 1
	}
	var side []*kubernetes.Node
	for i := range min(count, len(pods)) {
		r := w.RunOf(string(pods[(e.A+i)%len(pods)].GetUID()))
		if r != nil && r.Node != nil && r.Node.Hears() && !slices.Contains(side, r.Node) {
			side = append(side, r.Node)
		}
	}
	w.sever(side, e.For)
}

// sever cuts some nodes off together for a while.
func (w *World) sever(side []*kubernetes.Node, d time.Duration) {
	w.Sever(side)
	known := w.published(side)
	w.After(clients.ClientEveryMin, func() { w.severedClient(side, known) })
	w.After(d, func() { w.Rejoin(side) })
}

// published returns the pods on some nodes that the services have led clients to.
func (w *World) published(side []*kubernetes.Node) []string {
	var uids []string
	if _, found := kubernetes.Lookup[*corev1.Service](w.Store, kubernetes.KindService, schedules.ClusterName+"-client"); !found {
		return nil
	}
	for _, n := range side {
		w.EachPodOn(n, func(pod *corev1.Pod) {
			if pod.Labels[resources.LabelCluster] == schedules.ClusterName && pod.Labels[resources.LabelRole] != "" {
				uids = append(uids, string(pod.UID))
			}
		})
	}
	return uids
}

// severedClient writes to the members on its side that it knows, for as long as the cut
// lasts.
func (w *World) severedClient(side []*kubernetes.Node, known []string) {
	var serving []*simetcd.Process
	for _, p := range w.Etcd.Processes {
		if p.Run.IsSevered() && slices.Contains(known, p.Run.UID()) && p.Serves {
			serving = append(serving, p)
		}
	}
	if !slices.ContainsFunc(side, func(n *kubernetes.Node) bool { return n.Severed }) {
		return
	}
	w.After(w.Dice.Between(clients.ClientEveryMin, clients.ClientEveryMax), func() { w.severedClient(side, known) })
	if len(serving) > 0 {
		w.Write(timeline.Pick(w.Dice, serving...))
	}
}
