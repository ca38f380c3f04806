// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// preparedPatience is how long a prepared pod may take until it waits for its member, before a
	// new pod with a new PVC replaces it.
	preparedPatience = 10 * time.Minute
	// maxPreparedPatience bounds how long that becomes while new pods do not help.
	maxPreparedPatience = 6 * time.Hour
)

// countMissing is how many members must be added. The pods of all of them are prepared
// together; the members are added one after the other. A voter without its pod and its
// data is already missing. So is the successor of a voter on a cordoned node.
func countMissing(o *Observed) int {
	if !isBootstrapped(o) {
		return max(0, desiredSize(o.Cluster)-1)
	}
	have := 0
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; !m.Unmanaged && !isLost(o, m) {
			have++
		}
	}
	return max(0, desiredSize(o.Cluster)+room(o)-have)
}

// isLost is true for a member whose pod and data no longer exist.
func isLost(o *Observed, m *Member) bool {
	return isGone(podByName(o.Pods, m.Name)) && pvcByName(o.PVCs, m.Name) == nil && !isAdmissible(o, m)
}

// isUsable is true for a prepared pod that will wait for a member as it is declared now.
func isUsable(o *Observed, p *Pod) bool {
	switch {
	case slices.Contains(o.Record.Removed, p.Name): // as in unusedPVCs
		return false
	case isGone(p), p.Running && isOverdue(o.Cluster, o.Now, p), declarationOf(o).isStale(p), isPersistent(o.Cluster) != (preparedPVCByName(o.PreparedPVCs, p.Name) != nil):
		return false
	case putsBack(o, p, nil), lacksImageOfPolicy(o.Now, p, patienceForPrepared(o)), !p.Running && isTied(o, p) && o.Now.Sub(p.Made) > patienceForPrepared(o):
		return false
	case upgradePathOf(o).joinVersion() != "":
		return isSameVersion(p.Version, parse(upgradePathOf(o).joinVersion()))
	default:
		return !hasOtherImage(o.Cluster, p)
	}
}

// lacksImageOfPolicy is true for a pod that does not run because an admission policy has given etcd or an init
// container an image that cannot be pulled. Many policies change new pods only, so a policy that was corrected helps a new pod. One
// is made when this pod is older than patience.
func lacksImageOfPolicy(now time.Time, p *Pod, patience time.Duration) bool {
	why, _, _ := strings.Cut(p.Waiting, ": ")
	return (p.FromPolicy || p.OtherInitImage) && !p.Running && IsImageWait(why) && now.Sub(p.Made) > patience
}

// awaitsPutBack is true for a prepared pod that does not keep the image that something else has set, and is
// replaced a little later.
func awaitsPutBack(o *Observed, p *Pod) bool {
	return hasUnrequestedImage(o.Now, p, nil) && !keepsImage(o, p, nil)
}

// isTied is true for a pod that may not run because of the node that it or its PVC is tied to, which may not
// come back. A new pod helps against nothing else: an image that cannot be pulled, or a cluster without
// room. A PVC that is not bound goes where its pod goes.
func isTied(o *Observed, p *Pod) bool {
	pvc := preparedPVCByName(o.PreparedPVCs, p.Name)
	bound := pvc != nil && pvc.Bound
	why, _, _ := strings.Cut(p.Waiting, ": ")
	switch podWaits[why].reason {
	case ReasonPodUnschedulable:
		return bound
	case "":
		return p.Node != "" || bound
	default:
		return false
	}
}

// patienceForPrepared is how long a prepared pod may take: half of the time for which the cluster has been not Ready,
// or a voter has been on a cordoned node. So each new pod, and perhaps a disk that its storage class retains,
// comes twice as late.
func patienceForPrepared(o *Observed) time.Duration {
	needed := time.Duration(0)
	for _, need := range []v1beta2.ClusterCondition{
		{Type: v1beta2.ClusterConditionReady, Status: corev1.ConditionFalse}, {Type: v1beta2.ClusterConditionOnCordonedNode, Status: corev1.ConditionTrue},
	} {
		needed = max(needed, lastedFor(o.Cluster.Status.Conditions, o.Now, need))
	}
	return min(max(preparedPatience, needed/2), maxPreparedPatience)
}

// isWaiting is true for a prepared pod in which nothing but the membership is missing.
func isWaiting(p *Pod) bool {
	return p != nil && !isGone(p) && p.Running
}

// nextPrepared returns the prepared pod whose member is added next; nil if none waits yet.
func nextPrepared(o *Observed) *Pod {
	for i := range o.Prepared {
		if p := &o.Prepared[i]; isWaiting(p) && isUsable(o, p) && !awaitsPutBack(o, p) && memberByName(o.Etcd.Members, p.Name) == nil {
			return p
		}
	}
	return nil
}

// isAdmissible is true for a member whose prepared pod still waits and has its volume. If the
// PVC was deleted, the pod must not start: the volume goes with the pod.
func isAdmissible(o *Observed, m *Member) bool {
	return !isGone(preparedPodByName(o.Prepared, m.Name)) && (!isPersistent(o.Cluster) || pvcByName(o.PVCs, m.Name) != nil || preparedPVCByName(o.PreparedPVCs, m.Name) != nil)
}
