// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// settleTime is how long a cluster has to reach its spec after the last fault, and
	// restTime how long it must stay there untouched. A container that has crashed
	// often is restarted every five minutes only.
	settleTime = 40 * time.Minute
	settleStep = 5 * time.Second
	restTime   = 2 * time.Minute
	// sayTime is how soon a controller says what it has seen last.
	sayTime = time.Second
	// leastPace is how often a controller looks at a cluster at rest at least.
	leastPace = 40 * time.Second
)

// settle ends all faults, lets the cluster come to rest and looks at what it has
// come to.
func (w *World) settle() {
	w.heal()
	deadline := w.now + settleTime
	wrong := ""
	for w.now < deadline && w.checks.found == nil {
		w.advance(settleStep)
		if wrong = w.goal(); wrong != "" {
			continue
		}
		if w.rests() {
			return
		}
	}
	if w.checks.found == nil {
		w.checks.violated("L1", "%v after the last fault: %s", settleTime, wrong)
	}
}

// heal ends everything that still goes wrong, and what only a person would end.
func (w *World) heal() {
	w.quiet = true
	w.disturb()
	w.trace("the faults end")
	clear(w.etcd.cut)
	clear(w.etcd.unreachable)
	w.etcd.slow, w.slowStartUntil = 0, 0
	w.rejoin(w.nodes)
	for _, n := range w.nodes {
		if !n.up && !n.lost {
			w.bootNode(n)
		}
	}
	for len(w.controllers) > 1 {
		w.controllers[len(w.controllers)-1].stop()
	}
	for _, c := range w.controllers {
		c.cache.thaw()
		c.armed = nil
	}
	if len(w.controllers) == 0 {
		w.startManager(0)
	}
	if old, found := lookup[clusterObject](w.store, kindCluster, clusterName); !found || old.DeletionTimestamp != nil {
		w.declare()
	}
	w.amend(func(s *v1beta2.ClusterSpec) { s.Paused = false })
	w.mend()
	w.giveUpWiped()
}

// goal returns what is not yet as it must be at the end.
func (w *World) goal() string {
	cluster, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	if !found {
		return "there is no cluster"
	}
	l := w.checks.recorded[string(cluster.UID)]
	if l != nil && !w.checks.judge(l).recoverable {
		l.lost = true
	}
	if !w.checks.served[string(cluster.UID)] && w.unborn(cluster) {
		return ""
	}
	if l != nil && !w.checks.matters(l) {
		return w.goalLost(cluster, l)
	}
	if l == nil {
		return "the cluster has not started"
	}
	if *cluster.Spec.Replicas == 0 {
		return w.goalAsleep(cluster, l)
	}
	for _, check := range []func(*v1beta2.EtcdCluster, *lineage) string{w.goalMembers, w.goalPods, w.goalTemplates, w.goalVolumes, w.goalObjects, w.goalStatus, w.goalCertificates, w.goalOperation} {
		if wrong := check(cluster, l); wrong != "" {
			return wrong
		}
	}
	return ""
}

// unborn is true for a cluster that was never started because it was never wanted to
// have a member, or because somebody wiped the record of whose its seed is, if the
// status says so.
func (w *World) unborn(cluster *v1beta2.EtcdCluster) bool {
	b := cluster.Status.BlockedBy
	return b != nil && (b.Reason == "NoMembersWanted" || (b.Reason == "SeedUnknown" && w.Since(b.Since.Time) > 10*time.Minute))
}

func (w *World) goalLost(cluster *v1beta2.EtcdCluster, l *lineage) string {
	if *cluster.Spec.Replicas == 0 {
		return ""
	}
	if wrong := w.goalRecovered(cluster, l); wrong != "" {
		return wrong
	}
	if !conditionIs(cluster, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) ||
		!conditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse) || cluster.Status.Phase != v1beta2.ClusterPhaseFailed {
		return fmt.Sprintf("the quorum is lost and the status says %s, %+v", cluster.Status.Phase, cluster.Status.Conditions)
	}
	if cluster.Status.BlockedBy == nil {
		return "the quorum is lost and the status does not say what it waits for"
	}
	return ""
}

func (w *World) goalAsleep(cluster *v1beta2.EtcdCluster, l *lineage) string {
	pods := w.store.list(kindPod)
	for _, object := range pods {
		if object.GetLabels()[resources.LabelApp] == "" {
			continue // a person has taken it out of the cluster
		}
		claim, found := lookup[claimObject](w.store, kindClaim, claimName(object.(*corev1.Pod)))
		if found && claim.DeletionTimestamp == nil {
			return "asleep, and pod " + object.GetName() + " runs"
		}
	}
	if len(pods) > 0 {
		return "" // their volumes would go with them, so they stay, and the status says so
	}
	if !w.checks.judge(l).recoverable {
		return "asleep without the data"
	}
	if cluster.Status.Phase != v1beta2.ClusterPhaseHibernated || conditionIs(cluster, v1beta2.ClusterConditionProgressing, corev1.ConditionTrue) {
		return "asleep and phase " + string(cluster.Status.Phase)
	}
	return ""
}

func conditionIs(cluster *v1beta2.EtcdCluster, t v1beta2.ClusterConditionType, status corev1.ConditionStatus) bool {
	for _, c := range cluster.Status.Conditions {
		if c.Type == t {
			return c.Status == status
		}
	}
	return false
}

func (w *World) goalMembers(cluster *v1beta2.EtcdCluster, l *lineage) string {
	size := int(*cluster.Spec.Replicas)
	if len(l.members.peers) != size || l.members.unsettled() > 0 {
		return fmt.Sprintf("%s, and %d are declared", describeMembers(l.members), size)
	}
	for i := range l.members.peers {
		p := w.etcd.member(l, l.members.peers[i].id)
		if p == nil || !w.etcd.ready(p) {
			return "member " + l.members.peers[i].name + " does not serve"
		}
		if p.version != resources.Version(cluster) && !w.waitsWithVersion(cluster) {
			return "member " + p.run.name + " runs " + p.version
		}
	}
	return ""
}

// waitsWithVersion is true for a cluster that is asked for a step that its members may
// not take, if the status says so.
func (w *World) waitsWithVersion(cluster *v1beta2.EtcdCluster) bool {
	b := cluster.Status.BlockedBy
	return b != nil && b.Reason == "VersionStep"
}

// goalTemplates: every pod is made from what is declared.
func (w *World) goalTemplates(cluster *v1beta2.EtcdCluster, _ *lineage) string {
	for _, object := range w.store.list(kindPod) {
		pod := object.(*corev1.Pod)
		request := resources.RestartRequest(cluster)
		switch {
		case pod.Labels[resources.LabelApp] == "":
			continue
		case pod.Annotations[resources.AnnotationTemplate] != resources.TemplateHash(cluster):
			return "pod " + pod.Name + " is not what is declared"
		case request != "" && pod.Annotations[resources.AnnotationRestart] != request:
			return "pod " + pod.Name + " was not restarted"
		case image(pod) != resources.Image(cluster) && !w.waitsWithVersion(cluster):
			return "pod " + pod.Name + " has image " + image(pod)
		}
	}
	return ""
}

func (w *World) goalPods(cluster *v1beta2.EtcdCluster, l *lineage) string {
	for _, object := range w.store.list(kindPod) {
		pod := object.(*corev1.Pod)
		p := w.etcd.byIP(pod.Status.PodIP)
		switch {
		case pod.Labels[resources.LabelApp] == "" && (p == nil || l.members.find(p.dir.id) == nil):
			continue // a person has taken it out of the cluster
		case ownerOf(pod) != string(cluster.UID):
			return "pod " + pod.Name + " of an earlier cluster is still there"
		case p == nil || p.dir.lineage != l || l.members.find(p.dir.id) == nil:
			return "pod " + pod.Name + " belongs to no member"
		case !isReady(pod) || pod.DeletionTimestamp != nil:
			return "pod " + pod.Name + " is not ready"
		case pod.Labels[resources.LabelRole] != resources.RoleVoter:
			return "pod " + pod.Name + " is not labelled a voter"
		}
	}
	for _, object := range w.store.list(kindClaim) {
		if resources.Owns(cluster, object) && l.members.find(w.etcd.idOf(object)) == nil {
			return "claim " + object.GetName() + " belongs to no member"
		}
	}
	return ""
}

// idOf returns the member whose data a claim holds.
func (e *etcdWorld) idOf(claim metav1.Object) uint64 {
	if d := e.claims[string(claim.GetUID())]; d != nil {
		return d.id
	}
	return 0
}

func (w *World) goalObjects(cluster *v1beta2.EtcdCluster, _ *lineage) string {
	peer, found := lookup[*corev1.Service](w.store, kindService, clusterName)
	if !found {
		return "there is no service for members"
	}
	if _, drifted := resources.PeerServiceDrift(cluster, peer); drifted {
		return "the service for members was changed"
	}
	if peer.Annotations[resources.AnnotationClusterID] == "" {
		return "there is no record of the bootstrap"
	}
	client, found := lookup[*corev1.Service](w.store, kindService, resources.ClientServiceName(cluster))
	if !found {
		return "there is no service for clients"
	}
	if _, drifted := resources.ClientServiceDrift(cluster, client); drifted {
		return "the service for clients was changed"
	}
	if wrong := goalFamilies(cluster, client); wrong != "" {
		return wrong
	}
	budget, found := lookup[budgetObject](w.store, kindBudget, clusterName)
	if !found || budget.Spec.MinAvailable.IntValue() != int(*cluster.Spec.Replicas)/2+1 {
		return "the disruption budget is not right"
	}
	return ""
}

func (w *World) goalStatus(cluster *v1beta2.EtcdCluster, l *lineage) string {
	s := &cluster.Status
	size := *cluster.Spec.Replicas
	leader := ""
	for _, p := range w.etcd.processes {
		if p.dir.lineage == l && p.leads() {
			leader = p.run.name
		}
	}
	wrong := s.Phase != v1beta2.ClusterPhaseRunning || s.Replicas != size || len(s.Members.Ready) != int(size) ||
		len(s.Members.Unready) != 0 || s.Leader != leader || ptr.Deref(s.Tolerance, -1) != (size-1)/2 ||
		s.ObservedGeneration != cluster.Generation || s.ControlPaused ||
		!conditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) ||
		!conditionIs(cluster, v1beta2.ClusterConditionQuorumLost, corev1.ConditionFalse) ||
		!conditionIs(cluster, v1beta2.ClusterConditionDegraded, corev1.ConditionFalse)
	if !w.waitsWithVersion(cluster) {
		wrong = wrong || s.BlockedBy != nil || s.CurrentVersion != resources.Version(cluster) ||
			!conditionIs(cluster, v1beta2.ClusterConditionProgressing, corev1.ConditionFalse)
	}
	if wrong {
		return fmt.Sprintf("the status says %+v", *s)
	}
	return ""
}

// stalled is true while the status says that the cluster waits for a person.
func (w *World) stalled() bool {
	cluster, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	return found && slices.ContainsFunc(cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Type == v1beta2.ClusterConditionStalled && c.Status == corev1.ConditionTrue
	})
}

// rests makes sure that a cluster that is as declared stays so, and that the
// controller writes nothing while it does. It returns false if that must be looked at
// again.
func (w *World) rests() bool {
	// What has made it so may have been a moment ago, and is said in the status yet.
	w.advance(sayTime)
	c := w.controllers[0]
	writes, reconciles, recovered, stalled := c.writes, c.reconciles, w.stats.Recovered, w.stalled()
	w.advance(w.rest)
	if w.stats.Recovered > recovered {
		return false // a member has come back late, and the cluster has gone on from it
	}
	wrong := w.goal()
	if wrong == askedToRecover {
		return false // a member has come back late, without a quorum
	}
	if wrong != "" {
		w.checks.violated("L1", "it was as declared, and then: %s", wrong)
		return true
	}
	cluster, _ := lookup[clusterObject](w.store, kindCluster, clusterName)
	l := w.checks.recorded[string(cluster.UID)]
	lost := l != nil && l.lost
	if !stalled && w.stalled() {
		writes++ // it says once that the same wait has lasted for too long
	}
	if n := c.writes - writes; n > 0 && (!lost || n > 5) { // a lost cluster has pods that crash, and says so
		w.checks.violated("L3", "%d writes at rest", n)
	}
	if n := c.reconciles - reconciles; (n < int(w.rest/leastPace) && *cluster.Spec.Replicas > 0) || n > 70 {
		w.checks.violated("L3", "%d reconciles at rest in %v", c.reconciles-reconciles, w.rest)
	}
	switch {
	case l == nil:
		w.stats.NeverServed++
	case lost:
		w.stats.Lost++
	default:
		w.stats.Spec++
	}
	return true
}
