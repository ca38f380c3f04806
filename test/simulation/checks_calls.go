// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// oldestLook is how old an observation may be when it is acted on.
const oldestLook = 12 * time.Second

// judged returns whether a disturbing call was decided on a list that a quorum
// confirmed after the last own change.
func (c *checks) judged(by *manager, what string) bool {
	l := &by.look
	switch {
	case !l.fromQuorum:
		c.violated("S2", "%s without a list that a quorum confirmed", what)
	case l.changed:
		c.violated("S2", "%s on a list from before the last own change", what)
	case c.w.now-l.started > oldestLook:
		c.violated("S2", "%s on an observation of %v ago", what, c.w.now-l.started)
	default:
		return true
	}
	return false
}

// changing is called before a change of the membership is proposed.
func (c *checks) changing(by *manager, l *lineage) {
	c.judged(by, "a change of the membership")
	c.unsettled = l.members.unsettled()
}

// changed is called after it.
func (c *checks) changed(by *manager, l *lineage, err error) {
	if c.late {
		return
	}
	by.look.changed = true
	if err != nil {
		return
	}
	for _, other := range c.w.controllers {
		if other != by {
			c.w.disturb()
			break
		}
	}
	if n := l.members.unsettled(); n > 1 && n > c.unsettled {
		c.violated("S3", "%d members are joining at once: %s", n, describeMembers(l.members))
	}
}

// removing is called before a removal is proposed.
func (c *checks) removing(by *manager, l *lineage, id uint64) {
	look := &by.look
	if !c.judged(by, "a removal") || !look.members.isVoter(id) {
		return
	}
	remain := look.members.voters() - 1
	if serving := look.serving(id); 2*serving <= remain {
		c.violated("S2", "removal of %x: %d of the %d that remain were seen to serve", id, serving, remain)
	}
	p := c.w.etcd.member(l, id)
	if c.w.disturbed(look) {
		return
	}
	if p == nil {
		if c.wanted(l) && c.kept(l.dirs[id]) {
			c.violated("S5", "removal of %s, which is wanted and has its data on its volume", l.dirs[id].name)
		}
		return
	}
	if p.dir.doomed {
		return
	}
	if look.leads(id) {
		c.violated("S2", "removal of %s, which leads", p.run.name)
	}
	if p.leader != 0 && c.wanted(l) {
		c.violated("S2", "removal of %s, which serves and is wanted", p.run.name)
	}
}

// wanted is true if every voter of an etcd is needed for the size that has been
// declared for a while.
func (c *checks) wanted(l *lineage) bool {
	cluster, found := lookup[clusterObject](c.w.store, kindCluster, clusterName)
	return found && l.members.voters() <= int(*cluster.Spec.Replicas) && c.w.now-c.sizeChanged > 2*time.Minute
}

// kept is true if a data directory is on a volume that stays.
func (c *checks) kept(d *dataDir) bool {
	if d == nil || d.doomed || d.destroyed {
		return false
	}
	claim, found := lookup[claimObject](c.w.store, kindClaim, d.name)
	return found && claim.DeletionTimestamp == nil && c.w.etcd.claims[string(claim.UID)] == d && ownerOf(claim) == d.lineage.owner
}

// writing is called before an object is created or updated.
func (c *checks) writing(by *manager, verb string, object metav1.Object) {
	switch o := object.(type) {
	case *v1beta2.EtcdCluster:
		c.writingStatus(by, o)
	case *corev1.Pod:
		if !resources.IsPrepared(o.Annotations) {
			c.made[[2]string{ownerOf(o), o.Annotations[resources.AnnotationVersion]}] = true
		}
		if live, found := lookup[*corev1.Pod](c.w.store, kindPod, o.Name); found && verb == "update" && image(live) != image(o) {
			c.restarting(by, live)
		}
	}
}

// recording remembers which etcd the record of a cluster stands for, and whether
// clients were let in to it.
func (c *checks) recording(service *corev1.Service) {
	owner := ownerOf(service)
	if service.Name != clusterName {
		c.served[owner] = c.served[owner] || service.Name == clusterName+"-client"
		return
	}
	c.switching(service)
	id := service.Annotations[resources.AnnotationClusterID]
	if id == "" {
		return
	}
	was, is := c.recorded[owner], (*lineage)(nil)
	for _, l := range c.w.etcd.lineages {
		if l.owner == owner && (id == fmt.Sprintf("%x", l.clusterID) || was == nil) {
			is = l // the last one: a seed that is made again has the ID of the one before
		}
	}
	if is == nil || is == was {
		return
	}
	if was != nil && was.replaced && is.reseeded != nil {
		c.goOn(was, is)
	} else if was != nil && c.served[owner] {
		c.violated("S4", "the record moves from seed %s to %s after clients were let in", was.seed, is.seed)
	}
	c.recorded[owner] = is
	is.lost = !c.judge(is).recoverable
}

// restarting is called before a container is restarted with another image, or a pod is
// deleted that comes back to its volume. Fewer than three voters have no quorum while
// one restarts; then all of them must serve before.
func (c *checks) restarting(by *manager, pod *corev1.Pod) {
	p := c.w.etcd.byIP(pod.Status.PodIP)
	if p == nil || startsJustNow(by, pod, p) || !c.judged(by, "a restart") || !by.look.members.isVoter(p.dir.id) {
		return
	}
	voters, serving := by.look.members.voters(), by.look.serving(p.dir.id)
	c.short = voters < 3 && serving == voters-1
	if 2*serving <= voters && !c.short {
		c.violated("S2", "restart of %s: %d of %d voters were seen to serve meanwhile", pod.Name, serving, voters)
	}
	if by.look.leads(p.dir.id) && serving > 0 && !c.w.disturbed(&by.look) {
		c.violated("S8", "restart of %s, which leads", pod.Name)
	}
	c.rolling(by, p)
}

// startsJustNow is true for a member of which nobody can know that it runs: Kubernetes
// does not say so yet, and it was started after a controller has found that nothing
// listens there. What does not run may be changed without a quorum; that it is given
// another start a moment after its start stops nobody who serves.
func startsJustNow(by *manager, pod *corev1.Pod, p *process) bool {
	at, refused := by.look.refused[pod.Name]
	if !refused || p.started < at {
		return false
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
}

// rolling: while one member restarts with another image no other one that was seen to
// serve is taken away, so that clients always find all but one behind the service.
func (c *checks) rolling(by *manager, p *process) {
	if len(c.w.controllers) > 1 || p.leader == 0 || !slices.Contains(by.look.healthy, p.dir.id) {
		return
	}
	for _, other := range c.w.runs {
		if other.rolling && !other.over && other.node.up && other.process != nil && other != p.run && p.dir.lineage.members.isVoter(other.process.dir.id) {
			c.violated("S8", "restart of %s while %s is not ready after its own", p.run.name, other.name)
		}
	}
}

// deleting is called before an object is deleted.
func (c *checks) deleting(by *manager, k kind, name string, only metav1.Preconditions) {
	if only.UID == nil {
		c.violated("S5", "deletion of %s %s by name", kindNames[k], name)
		return
	}
	if by.look.live[kindNames[k]+"/"+name] != *only.UID {
		c.violated("S5", "deletion of %s %s without a live read", kindNames[k], name)
		return
	}
	object := c.w.store.tables[k].get(name)
	if object == nil || object.GetUID() != *only.UID {
		return // the precondition will stop it
	}
	if by.look.owner != ownerOf(object) {
		c.violated("S5", "deletion of %s %s, which belongs to %s, for %s", kindNames[k], name, ownerOf(object), by.look.owner)
	}
	switch o := object.(type) {
	case *corev1.Pod:
		c.deletingPod(by, o)
	case *corev1.PersistentVolumeClaim:
		c.deletingClaim(o)
	}
}

// deletingPod: a voter is stopped when its pod is made again on the same volume, or
// when it is about to be removed, because there are more than wanted, and while the
// others are a quorum.
func (c *checks) deletingPod(by *manager, pod *corev1.Pod) {
	p := c.w.etcd.byIP(pod.Status.PodIP)
	if p == nil || p.dir.doomed || finished(pod) || pod.DeletionTimestamp != nil || c.sleeping() || startsJustNow(by, pod, p) {
		return // it is nobody who votes, or who was asked to go before
	}
	l := p.dir.lineage
	if !c.matters(l) || !l.members.isVoter(p.dir.id) || !c.judged(by, "a stop") {
		return
	}
	claim, kept := lookup[claimObject](c.w.store, kindClaim, claimName(pod))
	voters, serving := by.look.members.voters(), by.look.serving(p.dir.id)
	cluster, found := lookup[clusterObject](c.w.store, kindCluster, clusterName)
	// A pod that clients were led away from goes for good only if there are too many.
	surplus := !found || voters > int(*cluster.Spec.Replicas)
	if kept && claim.DeletionTimestamp == nil && (pod.Labels[resources.LabelRole] != resources.RoleLeaving || !surplus) {
		c.restarting(by, pod)
		return
	}
	switch {
	case 2*serving <= voters:
		c.violated("S2", "stop of %s: %d of %d voters were seen to serve meanwhile", pod.Name, serving, voters)
	case by.look.leads(p.dir.id) && !c.w.disturbed(&by.look):
		c.violated("S2", "stop of %s, which leads", pod.Name)
	case found && voters <= int(*cluster.Spec.Replicas) && c.w.now-c.sizeChanged > 2*time.Minute:
		c.violated("S2", "deletion of pod %s, whose member votes and is wanted", pod.Name)
	}
}

func (c *checks) deletingClaim(claim *corev1.PersistentVolumeClaim) {
	d := c.w.etcd.claims[string(claim.UID)]
	if d != nil && d.lineage != nil && c.matters(d.lineage) && d.lineage.members.find(d.id) != nil {
		c.violated("S5", "deletion of claim %s, whose member is in the list", claim.Name)
	}
}

// bootstrapping is called when etcd is about to start a new cluster.
func (c *checks) bootstrapping(l *lineage) {
	if l.token != l.owner {
		c.violated("S4", "seed %s has token %q and not the UID of its cluster", l.seed, l.token)
	}
	c.beginsAnew(l.owner)
	if was := c.recorded[l.owner]; was != nil && was.clusterID == l.clusterID && !c.served[l.owner] {
		c.recorded[l.owner] = l // the same seed once more, as the record says
	}
	if c.served[l.owner] {
		c.violated("S4", "seed %s of a cluster that has served", l.seed)
	}
	for _, other := range c.w.etcd.lineages {
		if other.owner == l.owner && other.seed != l.seed && other.remains() {
			c.violated("S4", "a second seed %s besides %s", l.seed, other.seed)
		}
	}
}

// remains is true if any data of an etcd is left.
func (l *lineage) remains() bool {
	for _, id := range l.order {
		if d := l.dirs[id]; !d.doomed && !d.destroyed {
			return true
		}
	}
	return false
}

// joining is called when etcd is about to fill an empty directory as a member.
func (c *checks) joining(r *run, d *dataDir, id uint64, l *lineage) {
	if before := l.dirs[id]; before != nil && before != d {
		c.violated("S5", "%s starts as member %x on an empty directory, and that member had one", r.name, id)
	}
}

// starting is called when a container is about to run etcd on a directory.
func (c *checks) starting(r *run, d *dataDir) {
	if d.empty() {
		return
	}
	if d.name != r.name {
		c.violated("S5", "pod %s runs on the data of %s", r.name, d.name)
	}
	if m := d.lineage.members.byURL(d.url); m != nil && m.id != d.id {
		c.violated("S5", "pod %s of member %x runs on the data of member %x, which had its name", r.name, m.id, d.id)
	}
}

// versioned is called when etcd has started: no version may be skipped or taken back, and
// none begun from a patch release that is not safe for it.
func (c *checks) versioned(p *process) {
	to, err := version.ParseSemantic(p.version)
	if err != nil || !c.matters(p.dir.lineage) || p.dir.lineage.blind {
		return
	}
	var low *version.Version
	for _, id := range p.dir.lineage.order {
		d := p.dir.lineage.dirs[id]
		if v, err := version.ParseSemantic(d.version); err == nil && p.dir.lineage.members.find(id) != nil && (low == nil || v.LessThan(low)) {
			low = v
		}
	}
	if low == nil || to.Minor() == low.Minor() {
		return
	}
	unsafe := low.Minor() == 5 && low.Patch() < 26 || low.Minor() == 6 && low.Patch() < 11
	if to.Minor() < low.Minor() || to.Minor() > low.Minor()+1 || unsafe {
		c.violated("S8", "%s starts with %s, and the lowest version was %s", p.run.name, p.version, low)
	}
}

// resized is called when a user changes the size.
func (c *checks) resized(size int32) {
	c.sizeChanged = c.w.now
	if size == 0 {
		c.sleepy = c.w.now
	}
}
