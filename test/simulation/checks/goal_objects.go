// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// goalFamilies returns what is wrong with the reports about the client Service.
func goalFamilies(cluster *v1beta2.EtcdCluster, client *corev1.Service) string {
	if cluster.Spec.Services == nil || cluster.Spec.Services.Client == nil {
		return ""
	}
	want := corev1.ConditionTrue
	if families := cluster.Spec.Services.Client.IPFamilies; len(families) > 0 && families[0] != client.Spec.IPFamilies[0] {
		want = corev1.ConditionFalse
	}
	if fixed := resources.ClientServiceFixed(cluster, client); (fixed != "") != (want == corev1.ConditionFalse) {
		return "the family of the client Service is declared otherwise, and the controller thinks: " + fixed
	}
	if !kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionServiceAsDeclared, want) {
		return "the status does not say whether the client Service is as declared"
	}
	return ""
}

// goalTemplates: every pod is made from what is declared.
func (c *Checks) goalTemplates(cluster *v1beta2.EtcdCluster, _ *simetcd.Lineage) string {
	for _, object := range c.w.Store.List(kubernetes.KindPod) {
		pod := object.(*corev1.Pod)
		request := resources.RestartRequest(cluster)
		switch {
		case pod.Labels[resources.LabelApp] == "":
			continue
		case pod.Annotations[resources.AnnotationTemplate] != resources.TemplateHash(cluster):
			return "pod " + pod.Name + " is not what is declared"
		case resources.Fills(pod):
			return "pod " + pod.Name + " still has what has filled it"
		case request != "" && pod.Annotations[resources.AnnotationRestart] != request:
			return "pod " + pod.Name + " was not restarted"
		case kubernetes.Requested(simetcd.Image(pod)) != resources.Image(cluster) && !c.waitsWithVersion(cluster):
			return "pod " + pod.Name + " has image " + simetcd.Image(pod)
		}
	}
	return ""
}

// isHeldByPerson is true for a deleted PVC whose pod a person has taken out of the cluster.
func (c *Checks) isHeldByPerson(pvc metav1.Object) bool {
	pod, found := kubernetes.Lookup[*corev1.Pod](c.w.Store, kubernetes.KindPod, pvc.GetName())
	return pvc.GetDeletionTimestamp() != nil && found && pod.Labels[resources.LabelApp] == ""
}

func (c *Checks) goalPods(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) string {
	for _, object := range c.w.Store.List(kubernetes.KindPod) {
		pod := object.(*corev1.Pod)
		p := c.w.Etcd.ByIP(pod.Status.PodIP)
		switch {
		case pod.Labels[resources.LabelApp] == "" && (p == nil || l.Members.Find(p.Dir.Id) == nil):
			continue // a person has taken it out of the cluster
		case simetcd.OwnerOf(pod) != string(cluster.UID):
			return "pod " + pod.Name + " of an earlier cluster is still there"
		case p == nil || p.Dir.Lineage != l || l.Members.Find(p.Dir.Id) == nil:
			return "pod " + pod.Name + " belongs to no member"
		case !kubernetes.IsReady(pod) || pod.DeletionTimestamp != nil:
			return "pod " + pod.Name + " is not ready"
		case pod.Labels[resources.LabelRole] != resources.RoleVoter:
			return "pod " + pod.Name + " is not labelled a voter"
		}
	}
	for _, object := range c.w.Store.List(kubernetes.KindPVC) {
		if c.isHeldByPerson(object) {
			continue
		}
		if resources.Owns(cluster, object) && l.Members.Find(c.w.Etcd.IdOf(object)) == nil {
			return "PVC " + object.GetName() + " belongs to no member"
		}
	}
	return ""
}

func (c *Checks) goalObjects(cluster *v1beta2.EtcdCluster, _ *simetcd.Lineage) string {
	peer, found := kubernetes.Lookup[*corev1.Service](c.w.Store, kubernetes.KindService, schedules.ClusterName)
	if !found {
		return "there is no headless Service"
	}
	if _, drifted := resources.PeerServiceDrift(cluster, peer); drifted {
		return "the headless Service was changed"
	}
	if written := c.record(); written == nil || resources.ParseRecord(written).ClusterID == "" || !resources.Owns(cluster, written) {
		return "there is no record"
	}
	client, found := kubernetes.Lookup[*corev1.Service](c.w.Store, kubernetes.KindService, resources.ClientServiceName(cluster))
	if !found {
		return "there is no client Service"
	}
	if _, drifted := resources.ClientServiceDrift(cluster, client); drifted {
		return "the client Service was changed"
	}
	if wrong := goalFamilies(cluster, client); wrong != "" {
		return wrong
	}
	budget, found := kubernetes.Lookup[kubernetes.Budget](c.w.Store, kubernetes.KindBudget, schedules.ClusterName)
	if !found || budget.Spec.MinAvailable.IntValue() != int(*cluster.Spec.Replicas)/2+1 {
		return "the disruption budget is not right"
	}
	if _, left := kubernetes.Lookup[kubernetes.Budget](c.w.Store, kubernetes.KindBudget, resources.RecoveryBudgetName(schedules.ClusterName)); left {
		return "the disruption budget of a recovery member is left"
	}
	return ""
}

// goalVolumes: volumes have the owner and the size that are declared, or the status says
// why not. It says so of a PVC that is being deleted while its member runs. PVCs of members that a restore has replaced wait for the cluster to wake, which removes them.
func (c *Checks) goalVolumes(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) string {
	doomed, rejected, asleep := false, false, len(c.w.Store.List(kubernetes.KindPod)) == 0
	for _, object := range c.w.Store.List(kubernetes.KindPVC) {
		pvc := object.(kubernetes.PVC)
		if pvc.Labels[resources.LabelApp] == "" || !resources.Owns(cluster, pvc) {
			continue
		}
		if pvc.DeletionTimestamp != nil {
			doomed = doomed || c.isUsedByVoter(pvc.Name, l)
			continue
		}
		if asleep && !slices.ContainsFunc(l.Members.Peers, func(p simetcd.Peer) bool { return p.Name == pvc.Name }) {
			continue
		}
		if resources.HasPVCDrifted(cluster, pvc) {
			return "PVC " + pvc.Name + " is not as declared"
		}
		growth, _ := resources.PVCGrowth(cluster, pvc)
		if growth != resources.GrownEnough && (growth != resources.GrowthRejected || c.w.Plan.Expandable) {
			return "the volume of PVC " + pvc.Name + " has not grown"
		}
		rejected = rejected || growth == resources.GrowthRejected
	}
	want := corev1.ConditionTrue
	if doomed || rejected {
		want = corev1.ConditionFalse
	}
	if c.w.Plan.Volumes && !kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionVolumesAsDeclared, want) {
		return "the status does not say whether the volumes are as declared"
	}
	return ""
}

// isUsedByVoter is true for the PVC of a voter whose pod has not ended.
func (c *Checks) isUsedByVoter(name string, l *simetcd.Lineage) bool {
	pod, found := kubernetes.Lookup[*corev1.Pod](c.w.Store, kubernetes.KindPod, name)
	return found && isLabelled(pod) && pod.Labels[resources.LabelRole] != resources.RoleLearner && pod.DeletionTimestamp == nil && !kubernetes.HasFinished(pod) &&
		slices.ContainsFunc(l.Members.Peers, func(p simetcd.Peer) bool { return p.Name == name })
}
