// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// oldestLook is how old an observation may be when it is acted on.
const oldestLook = 12 * time.Second

// isJudged returns whether a disturbing call was decided on a list that a quorum
// confirmed after the last own change.
func (c *Checks) isJudged(by *manager.Manager, what string) bool {
	l := &by.Observed
	switch {
	case !l.FromQuorum:
		c.w.Violated("S2", "%s without a list that a quorum confirmed", what)
	case l.Changed:
		c.w.Violated("S2", "%s on a list from before the last own change", what)
	case c.w.Elapsed-l.Started > oldestLook:
		c.w.Violated("S2", "%s on an observation of %v ago", what, c.w.Elapsed-l.Started)
	default:
		return true
	}
	return false
}

// Changing is called before a change of the membership is proposed.
func (c *Checks) Changing(by *manager.Manager, l *simetcd.Lineage) {
	c.isJudged(by, "a change of the membership")
	if l.IsOfOthers() {
		c.w.Violated("S5", "the membership of another cluster is about to be changed: %s", simetcd.DescribeMembers(l.Members))
	}
	c.unsettled = l.Members.Unsettled()
}

// Changed is called after it.
func (c *Checks) Changed(by *manager.Manager, l *simetcd.Lineage, err error) {
	if c.w.Late {
		return
	}
	by.Observed.Changed = true
	if err != nil {
		return
	}
	c.countChange()
	for _, other := range c.w.Controllers {
		if other != by {
			c.w.Disturb()
			break
		}
	}
	if n := l.Members.Unsettled(); n > 1 && n > c.unsettled {
		c.w.Violated("S3", "%d members are joining at once: %s", n, simetcd.DescribeMembers(l.Members))
	}
}

// Removing is called before a removal is proposed.
func (c *Checks) Removing(by *manager.Manager, l *simetcd.Lineage, id uint64) {
	if p := c.w.Etcd.Member(l, id); p != nil && p.IsOld() {
		c.removingOld(l, p)
	}
	look := &by.Observed
	if !c.isJudged(by, "a removal") || !look.Members.IsVoter(id) {
		return
	}
	remain := look.Members.Voters() - 1
	if serving := look.Serving(id); 2*serving <= remain {
		c.w.Violated("S2", "removal of %x: %d of the %d that remain were seen to serve", id, serving, remain)
	}
	p := c.w.Etcd.Member(l, id)
	if c.w.IsDisturbed(look) {
		return
	}
	if writing := look.Writing(l, id); 2*writing <= remain {
		c.w.Violated("S2", "removal of %x: the disks of %d of the %d that remain take writes", id, writing, remain)
	}
	if p == nil {
		if c.isDesired(l) && c.isKept(l.Dirs[id]) && !c.w.IsAway(l.Dirs[id].Name, by.Skew) && !c.canGoFirst(l, l.Dirs[id].Name) {
			c.w.Violated("S5", "removal of %s, which is desired and has its data on its volume", l.Dirs[id].Name)
		}
		return
	}
	if p.Dir.Doomed {
		return
	}
	if c.w.Etcd.Unreachable[p.Run.Name()] && (c.isRequestedAway(p.Run.Name()) || c.isOutdatedWithoutPVC(p.Run.Name())) {
		return // the controller does not reach it for a hand-over, and a person wants it to go
	}
	if look.Leads(id) && slices.Contains(look.Healthy, id) { // an unresponsive member transfers no leadership
		c.w.Violated("S2", "removal of %s, which leads", p.Run.Name())
	}
	if p.Leader != 0 && !p.Dir.Hung && c.isDesired(l) {
		c.w.Violated("S2", "removal of %s, which serves and is desired", p.Run.Name())
	}
}

// isRequestedAway is true if a person has requested another member in the place of a member.
func (c *Checks) isRequestedAway(name string) bool {
	cluster, found := kubernetes.Lookup[*v1beta2.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || cluster.Status.Operation == nil {
		return false
	}
	op := cluster.Status.Operation
	return op.Type == v1beta2.OperationReplace && !op.IsOver() && slices.Contains(op.Members, name)
}

// isOutdatedWithoutPVC is true for a member whose pod is not what is declared, and that another member replaces, because
// its data ends with the pod.
func (c *Checks) isOutdatedWithoutPVC(name string) bool {
	cluster, found := kubernetes.Lookup[*v1beta2.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	pod, exists := kubernetes.Lookup[*corev1.Pod](c.w.Store, kubernetes.KindPod, name)
	persistent := found && cluster.Spec.Pod != nil && cluster.Spec.Pod.PersistentVolumeClaimSpec != nil
	return found && exists && !persistent && pod.Annotations[resources.AnnotationTemplate] != resources.TemplateHash(cluster)
}

// canGoFirst is true for a member that a person wants replaced and that does not run, in an etcd
// without learners. No other member can join beside it, so it is removed before its successor
// joins (ADR 10). The voters that serve without it are a quorum, so they have every
// acknowledged write. In an etcd with learners the successor votes first.
func (c *Checks) canGoFirst(l *simetcd.Lineage, name string) bool {
	low := l.LowestVersion()
	return low != nil && !resources.HasLearners(low.String()) && c.isRequestedAway(name)
}

// isDesired is true if an etcd has no more voters than the desired size, which did not change
// for a while.
func (c *Checks) isDesired(l *simetcd.Lineage) bool {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	return found && l.Members.Voters() <= int(*cluster.Spec.Replicas) && c.w.Elapsed-c.sizeChanged > 2*time.Minute
}

// isKept is true if a data directory is on a volume that stays.
func (c *Checks) isKept(d *simetcd.DataDir) bool {
	if d == nil || d.Doomed || d.Destroyed {
		return false
	}
	pvc, found := kubernetes.Lookup[kubernetes.PVC](c.w.Store, kubernetes.KindPVC, d.Name)
	return found && pvc.DeletionTimestamp == nil && c.w.Etcd.PVCs[string(pvc.UID)] == d && simetcd.OwnerOf(pvc) == d.Lineage.Owner
}

// Writing is called before an object is created or updated.
func (c *Checks) Writing(by *manager.Manager, verb string, object metav1.Object) {
	switch o := object.(type) {
	case *v1beta2.EtcdCluster:
		c.writingStatus(by, o)
	case *corev1.Pod:
		if !resources.IsPrepared(o.Annotations) {
			c.made[[2]string{simetcd.OwnerOf(o), o.Annotations[resources.AnnotationVersion]}] = true
		}
		if verb == "create" {
			c.beginningEmpty(by, o)
		}
		live, found := kubernetes.Lookup[*corev1.Pod](c.w.Store, kubernetes.KindPod, o.Name)
		conflicts := found && o.ResourceVersion != "" && o.ResourceVersion != live.ResourceVersion
		if found && verb == "update" && !conflicts && simetcd.Image(live) != simetcd.Image(o) {
			c.restarting(by, live)
		}
	}
}

// ServiceChanged remembers whether clients were led to a cluster.
func (c *Checks) ServiceChanged(service *corev1.Service) {
	owner := simetcd.OwnerOf(service)
	c.Published[owner] = c.Published[owner] || service.Name == schedules.ClusterName+"-client"
}

// RecordChanged remembers which etcd the record of a cluster stands for.
func (c *Checks) RecordChanged(written *corev1.ConfigMap) {
	owner := simetcd.OwnerOf(written)
	c.cuttingOver(written)
	id := resources.ParseRecord(written).ClusterID
	if id == "" {
		return
	}
	was := c.recorded[owner]
	is := c.lineageOf(owner, id, was == nil)
	if is == nil || is == was {
		return
	}
	c.published(is)
	if was != nil && is.Predecessor != nil && (was.Replaced || c.isFilledAgain(was, is)) {
		c.continueIn(was, is)
	} else if was != nil && was.Predecessor == is && !was.VoterRemains() {
		is.Replaced = false // the new etcd was lost with all of its data, and the old members are all that is left
		c.continueIn(was, is)
	} else if was != nil && c.Published[owner] {
		c.w.Violated("S4", "the bootstrap record moves from %s to %s after the cluster was published to clients", was.BootstrapMember, is.BootstrapMember)
	}
	c.recorded[owner] = is
	is.QuorumLost = !c.w.Standing(is).Recoverable
	// The client Service may be there already: a controller made it from what it knew of the
	// cluster before.
	clients, found := kubernetes.Lookup[*corev1.Service](c.w.Store, kubernetes.KindService, schedules.ClusterName+"-client")
	c.Published[owner] = c.Published[owner] || found && simetcd.OwnerOf(clients) == owner
}

// lineageOf returns the last etcd of an EtcdCluster that has the cluster ID: a bootstrap member that
// is recreated has the ID of the bootstrap member before. If no etcd has the ID, and the caller
// accepts any, it returns the last etcd.
func (c *Checks) lineageOf(owner, id string, orLast bool) *simetcd.Lineage {
	var found, last *simetcd.Lineage
	for _, l := range c.w.Etcd.Lineages {
		if l.Owner != owner {
			continue
		}
		last = l
		if id == fmt.Sprintf("%x", l.ClusterID) {
			found = l
		}
	}
	if found == nil && orLast {
		return last
	}
	return found
}

// restarting is called before a container is restarted with another image, or a pod is
// deleted that comes back to its volume. Fewer than three voters have no quorum while
// one restarts; then all of them must serve before.
func (c *Checks) restarting(by *manager.Manager, pod *corev1.Pod) {
	p := c.w.Etcd.ByIP(pod.Status.PodIP)
	if p == nil || startsJustNow(by, pod, p) || c.isUnresponsiveRestart(by, p) || !c.isJudged(by, "a restart") || !by.Observed.Members.IsVoter(p.Dir.Id) {
		return
	}
	voters, serving := by.Observed.Members.Voters(), by.Observed.Serving(p.Dir.Id)
	c.short = voters < 3 && serving == voters-1
	if 2*serving <= voters && !c.short {
		c.w.Violated("S2", "restart of %s: %d of %d voters were seen to serve meanwhile", pod.Name, serving, voters)
	}
	if writing := by.Observed.Writing(p.Dir.Lineage, p.Dir.Id); 2*writing <= voters && !c.short && !c.w.IsDisturbed(&by.Observed) {
		c.w.Violated("S2", "restart of %s: the disks of %d of %d voters take writes meanwhile", pod.Name, writing, voters)
	}
	responded := slices.Contains(by.Observed.Healthy, p.Dir.Id) // an unresponsive member transfers no leadership
	if responded && by.Observed.Leads(p.Dir.Id) && serving > 0 && !c.w.IsDisturbed(&by.Observed) {
		c.w.Violated("S8", "restart of %s, which leads", pod.Name)
	}
	if kubernetes.IsReady(pod) { // otherwise it is not behind the service
		c.rolling(by, p)
	}
}

// startsJustNow is true for a member that is not known to run. Kubernetes does not report it yet, and
// it was started after a controller has found that nothing listens at its address. A member that
// does not run may be changed without a quorum. Another start a moment after its start stops no
// member that serves.
func startsJustNow(by *manager.Manager, pod *corev1.Pod, p *simetcd.Process) bool {
	at, rejected := by.Observed.Rejected[pod.Name]
	if !rejected || p.Started < at {
		return false
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
}

// rolling checks that no member that was observed to serve is stopped while another member restarts
// with another image. So clients always find all members but one in the Service. A member
// whose disk takes no writes responds and completes no linearizable read: it does not serve.
func (c *Checks) rolling(by *manager.Manager, p *simetcd.Process) {
	if len(c.w.Controllers) > 1 || p.Leader == 0 || p.Dir.Hung || !slices.Contains(by.Observed.Healthy, p.Dir.Id) {
		return
	}
	for _, other := range c.w.Runs {
		if other.Rolling && !other.Over && !c.restartsUnasked(other.Name()) && other.Node.Up && other.Process != nil && other != p.Run && p.Dir.Lineage.Members.IsVoter(other.Process.Dir.Id) {
			c.w.Violated("S8", "restart of %s while %s is not ready after its own", p.Run.Name(), other.Name())
		}
	}
}

// Deleting is called before an object is deleted.
func (c *Checks) Deleting(by *manager.Manager, k kubernetes.Kind, name string, only metav1.Preconditions) {
	if only.UID == nil {
		c.w.Violated("S5", "deletion of %s %s by name", kubernetes.KindNames[k], name)
		return
	}
	if by.Observed.Live[kubernetes.KindNames[k]+"/"+name] != *only.UID {
		c.w.Violated("S5", "deletion of %s %s without a live read", kubernetes.KindNames[k], name)
		return
	}
	object := c.w.Store.Tables[k].Get(name)
	if object == nil || object.GetUID() != *only.UID || only.ResourceVersion != nil && object.GetResourceVersion() != *only.ResourceVersion {
		return // the precondition will stop it
	}
	if by.Observed.Owner != simetcd.OwnerOf(object) {
		c.w.Violated("S5", "deletion of %s %s, which belongs to %s, for %s", kubernetes.KindNames[k], name, simetcd.OwnerOf(object), by.Observed.Owner)
	}
	switch o := object.(type) {
	case *corev1.Pod:
		c.deletingPod(by, o)
	case *corev1.PersistentVolumeClaim:
		c.deletingPVC(o)
	}
}

// deletingPod checks that a voter is stopped in two cases only. Its pod is recreated on the same
// volume, or the cluster has more voters than desired, and the others are a quorum.
func (c *Checks) deletingPod(by *manager.Manager, pod *corev1.Pod) {
	p := c.w.Etcd.ByIP(pod.Status.PodIP)
	if p == nil || p.Dir.Doomed || kubernetes.HasFinished(pod) || pod.DeletionTimestamp != nil || c.isSleeping() || startsJustNow(by, pod, p) {
		return // it does not vote, or its deletion was requested before
	}
	l := p.Dir.Lineage
	if !c.Matters(l) || !l.Members.IsVoter(p.Dir.Id) || c.restartsTogether(pod, l) {
		return
	}
	pvc, kept := kubernetes.Lookup[kubernetes.PVC](c.w.Store, kubernetes.KindPVC, kubernetes.PVCName(pod))
	if kept && pvc.DeletionTimestamp == nil && c.isUnresponsiveRestart(by, p) || !c.isJudged(by, "a stop") {
		return
	}
	voters, serving := by.Observed.Members.Voters(), by.Observed.Serving(p.Dir.Id)
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	// A pod that was drained is permanently deleted only if there are too many. A controller that has read
	// the spec right before knows no size that is younger, and restarts the member.
	surplus := !found || voters > int(*cluster.Spec.Replicas) && c.w.Elapsed-c.sizeChanged > time.Second
	if kept && pvc.DeletionTimestamp == nil && (pod.Labels[resources.LabelRole] != resources.RoleDraining || !surplus) {
		c.restarting(by, pod)
		return
	}
	switch {
	case 2*serving <= voters:
		c.w.Violated("S2", "stop of %s: %d of %d voters were seen to serve meanwhile", pod.Name, serving, voters)
	case by.Observed.Leads(p.Dir.Id) && !c.w.IsDisturbed(&by.Observed):
		c.w.Violated("S2", "stop of %s, which leads", pod.Name)
	case found && voters <= int(*cluster.Spec.Replicas) && c.w.Elapsed-c.sizeChanged > 2*time.Minute:
		c.w.Violated("S2", "deletion of pod %s, whose member votes and is desired", pod.Name)
	}
}

func (c *Checks) deletingPVC(pvc *corev1.PersistentVolumeClaim) {
	d := c.w.Etcd.PVCs[string(pvc.UID)]
	if d != nil && d.Lineage != nil && c.Matters(d.Lineage) && d.Lineage.Members.Find(d.Id) != nil {
		c.w.Violated("S5", "deletion of PVC %s, whose member is in the list", pvc.Name)
	}
}
