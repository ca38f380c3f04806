// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

const (
	// namespaceStep is how often the namespace controller deletes all objects.
	namespaceStep = 5 * time.Second
	// namespaceTime is how long a namespace may take to go. Members on a node that is down
	// take until the node is back, and nodes are down for up to half an hour.
	namespaceTime = 40 * time.Minute
)

// deleteNamespace deletes the namespace with everything in it, as the namespace controller
// does: kind by kind, in any order, while nothing can be created. When nothing exists any more, a
// user makes namespace and cluster again.
func (w *World) deleteNamespace(e schedules.Event) {
	w.Admission.Reject(w.Elapsed+namespaceTime, kubernetes.RejectAll)
	w.Checks.KeptPVCs = nil
	if cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName); found {
		w.Checks.Deleted[string(cluster.UID)] = true // its pods may be deleted before its object
	}
	w.deleteAll(e.A, w.Elapsed+namespaceTime)
}

func (w *World) deleteAll(first int, deadline time.Duration) {
	if w.Quiet {
		return // the faults have ended before, and the cluster exists again
	}
	left := ""
	for i := range kubernetes.Kinds {
		k := kubernetes.Kind((first + int(i)) % int(kubernetes.Kinds))
		if k == kubernetes.KindCluster {
			w.DeleteCluster()
		}
		for _, object := range w.Store.List(k) {
			left = kubernetes.KindNames[k] + " " + object.GetName()
			_ = w.Store.DeleteObject(k, object.GetName(), metav1.Preconditions{})
		}
	}
	switch {
	case left == "":
		w.Admission.Admit()
		w.CreateCluster()
	case w.Elapsed >= deadline:
		w.Violated("L1", "the namespace is not deleted after %v: %s is left", namespaceTime, left)
	default:
		w.After(namespaceStep, func() { w.deleteAll(first, deadline) })
	}
}
