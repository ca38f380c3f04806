// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// World is one simulated Kubernetes with one EtcdCluster and its etcd.
// Everything in it happens on one goroutine, in an order that the seed decides.
type World struct {
	*timeline.Timeline
	Plan *schedules.Schedule
	Etcd *simetcd.World
	// Observer is set by what is built on top.
	Observer Observer

	Store *Store
	Nodes []*Node
	Runs  []*Run
	// Caches are those of the controllers that run.
	Caches []*Cache
	ips    int
	// tied holds the nodes of local volumes, by the UIDs of their PVCs.
	tied map[string]*Node
	// Admission is what quotas and policies do.
	Admission Admission
	// Forced are the names of pods whose deletion a user has forced.
	Forced map[string]bool
	// SlowStartUntil makes pods start slowly until then.
	SlowStartUntil time.Duration
	// verified holds what was found about certificates.
	verified map[shown]bool
}

// Observer looks at what happens in Kubernetes.
type Observer interface {
	// Starting is called when a container is about to run etcd on a directory.
	Starting(r *Run, d *simetcd.DataDir)
	// CertificatesChanged is called when other certificates are shown or trusted.
	CertificatesChanged()
	// SecretRemoved is called when a Secret no longer exists.
	SecretRemoved(secret *corev1.Secret)
	// RemovingPVC is called when a PVC is about to go.
	RemovingPVC(pvc PVC)
	// ServiceChanged is called when a Service has changed.
	ServiceChanged(service *corev1.Service)
	// RecordChanged is called when the record of a cluster has changed, or was deleted.
	RecordChanged(record *corev1.ConfigMap)
	// BeforeEviction is called when the budget, if there is one, allows an eviction.
	BeforeEviction(pod *corev1.Pod, budget bool)
}

// New is a Kubernetes with nodes and no objects.
func New(t *timeline.Timeline, plan *schedules.Schedule) *World {
	w := &World{Timeline: t, Plan: plan, Etcd: simetcd.New(t, plan), Nodes: newNodes(plan.Skew, timeline.NewDice(plan.Seed, 26)), tied: map[string]*Node{}, Forced: map[string]bool{}, Admission: Admission{Changes: plan.PodsChanged}}
	w.Store = newStore(w)
	w.Etcd.Network = w
	return w
}

// startDelay is how long it takes from the binding of a pod until its container runs.
func (w *World) startDelay() time.Duration {
	if w.Elapsed < w.SlowStartUntil {
		return w.Dice.Between(15*time.Second, time.Minute)
	}
	return w.Dice.Between(100*time.Millisecond, 2*time.Second)
}

// Tick lets the members talk and the kubelets probe.
func (w *World) Tick() {
	w.Etcd.Tick()
	for _, r := range w.Runs {
		r.probe()
	}
}

// PVCDir returns the directory on the volume of a PVC; nil if there is none.
func (w *World) PVCDir(name string) *simetcd.DataDir {
	pvc, found := Lookup[PVC](w.Store, KindPVC, name)
	if !found {
		return nil
	}
	return w.Etcd.DirOn(string(pvc.UID))
}

// Address implements etcd's network.
func (w *World) Address(name string) string {
	pod, found := Lookup[*corev1.Pod](w.Store, KindPod, name)
	if !found || pod.Labels[resources.LabelCluster] != schedules.ClusterName {
		return ""
	}
	return pod.Status.PodIP
}

// IsResolvable is true while members find each other by name.
func (w *World) IsResolvable() bool {
	service, found := Lookup[*corev1.Service](w.Store, KindService, schedules.ClusterName)
	return found && service.Spec.Selector[resources.LabelCluster] == schedules.ClusterName && service.Spec.PublishNotReadyAddresses
}

// AnyPod chooses a pod by a number; nil if there is none.
func (w *World) AnyPod(i int) *corev1.Pod {
	pods := w.Store.List(KindPod)
	if len(pods) == 0 {
		return nil
	}
	return pods[i%len(pods)].(*corev1.Pod)
}

// RefusesConnections is true for an address with connections refused at once: its pod exists
// and nothing listens in it. A starting etcd, or an address without a pod, sends no reply at
// all.
func (w *World) RefusesConnections(ip string) bool {
	return slices.ContainsFunc(w.Runs, func(r *Run) bool {
		return r.ip == ip && r.Process == nil && !r.Over && r.Node.Up && !w.Etcd.IsHidden(r)
	})
}

// IsNothingLeft is true if the cluster has neither a pod nor a volume. A volume that it has released
// holds what a removed member had, and does not count. Neither does one that was retained for the
// cluster that had the name before.
func (w *World) IsNothingLeft() bool {
	cluster, found := Lookup[EtcdCluster](w.Store, KindCluster, schedules.ClusterName)
	for _, k := range []Kind{KindPod, KindPVC} {
		for _, object := range w.Store.List(k) {
			owner := simetcd.OwnerOf(object)
			released := owner == "" || found && owner != string(cluster.UID)
			if object.GetLabels()[resources.LabelCluster] == schedules.ClusterName && !released && !resources.IsPrepared(object.GetAnnotations()) {
				return false
			}
		}
	}
	return true
}
