// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// Goal returns what is not yet as it must be at the end.
func (c *Checks) Goal() string {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return "there is no cluster"
	}
	l := c.recorded[string(cluster.UID)]
	if l != nil && !c.w.Standing(l).Recoverable {
		l.QuorumLost = true
	}
	if !c.Published[string(cluster.UID)] && c.isUnborn(cluster) {
		return ""
	}
	if l != nil && (!c.Matters(l) || c.needsPerson(cluster, l)) {
		return c.goalLost(cluster, l)
	}
	if l == nil {
		return "the cluster has not started"
	}
	if *cluster.Spec.Replicas == 0 {
		return c.goalAsleep(cluster, l)
	}
	for _, check := range []func(*v1beta2.EtcdCluster, *simetcd.Lineage) string{c.goalMembers, c.goalPods, c.goalTemplates, c.goalVolumes, c.goalObjects, c.goalStatus, c.goalCertificates, c.goalOperation} {
		if wrong := check(cluster, l); wrong != "" {
			return wrong
		}
	}
	return ""
}

// needsPerson is true for a cluster without a quorum, which comes back only by what no controller may
// do without a person.
func (c *Checks) needsPerson(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) bool {
	standing := c.w.Standing(l)
	return *cluster.Spec.Replicas > 0 && !standing.Live && standing.Recoverable && !c.w.ResumesUntouched(l)
}

// isUnborn is true for a cluster that has not served because it is not wanted to have a
// member. The status must report that, and no pod may be left. The same holds if the local volume of the bootstrap member was on a node that no longer exists.
func (c *Checks) isUnborn(cluster *v1beta2.EtcdCluster) bool {
	b := cluster.Status.BlockedBy
	waits := b != nil && (b.Reason == string(planner.ReasonWaitingForBootstrapMember) || b.Reason == string(planner.ReasonPodUnschedulable))
	if waits && c.w.Plan.LocalVolumes {
		return slices.ContainsFunc(c.w.Store.List(kubernetes.KindPod), func(pod metav1.Object) bool { return c.w.IsAway(pod.GetName(), 0) })
	}
	return b != nil && b.Reason == string(planner.ReasonDesiredSizeZero) && !slices.ContainsFunc(c.w.Store.List(kubernetes.KindPod), isLabelled)
}

// isLabelled is false for a pod that a person has taken out of the cluster.
func isLabelled(pod metav1.Object) bool { return pod.GetLabels()[resources.LabelApp] != "" }

// goalAsleep: no pod is left, and the data is. Volumes that were declared larger grow without pods, too;
// the status reports the end of that, so the cluster does not rest before.
func (c *Checks) goalAsleep(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) string {
	pods := c.w.Store.List(kubernetes.KindPod)
	for _, object := range pods {
		if !isLabelled(object) {
			continue
		}
		pvc, found := kubernetes.Lookup[kubernetes.PVC](c.w.Store, kubernetes.KindPVC, kubernetes.PVCName(object.(*corev1.Pod)))
		if found && pvc.DeletionTimestamp == nil {
			return "asleep, and pod " + object.GetName() + " runs"
		}
	}
	if len(pods) > 0 {
		return c.goalVolumes(cluster, l) // their volumes would go with them, so they stay, and the status reports that
	}
	if !c.w.Standing(l).Recoverable {
		return "asleep without the data"
	}
	if c.unwitnessed[string(cluster.UID)] && c.isUnborn(cluster) {
		return "" // its owner has deleted it since, and an API from before it had served is back: no witness but the data of its bootstrap member
	}
	if cluster.Status.Phase != v1beta2.ClusterPhaseHibernated || kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionProgressing, corev1.ConditionTrue) {
		return "asleep and phase " + string(cluster.Status.Phase)
	}
	return c.goalVolumes(cluster, l)
}

func (c *Checks) goalMembers(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) string {
	size := int(*cluster.Spec.Replicas)
	if len(l.Members.Peers) != size || l.Members.Unsettled() > 0 {
		return fmt.Sprintf("%s, and %d are declared", simetcd.DescribeMembers(l.Members), size)
	}
	for i := range l.Members.Peers {
		p := c.w.Etcd.Member(l, l.Members.Peers[i].Id)
		if p == nil || !c.w.Etcd.IsReady(p) {
			return "member " + l.Members.Peers[i].Name + " does not serve"
		}
		if p.Version != resources.Version(cluster) && !c.waitsWithVersion(cluster) {
			return "member " + p.Run.Name() + " runs " + p.Version
		}
	}
	return ""
}

// waitsWithVersion is true for a cluster whose spec requests a version step that its members
// may not take, if the status reports that.
func (c *Checks) waitsWithVersion(cluster *v1beta2.EtcdCluster) bool {
	b := cluster.Status.BlockedBy
	return b != nil && b.Reason == string(planner.ReasonVersionStep)
}
