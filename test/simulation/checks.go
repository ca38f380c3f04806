// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Violation is a rule that was broken. The rules are those of docs/architecture.md.
type Violation struct {
	Rule string
	What string
	At   time.Duration
}

func (v Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.Rule, v.At, v.What) }

// checks watches everything that happens for a broken rule. It counts for itself and
// knows the truth.
type checks struct {
	w *World
	// found is the first violation; what follows from it is not looked at.
	found *Violation
	// acting is the controller whose call is being carried out.
	acting *manager
	// recorded holds, for each EtcdCluster, the etcd that its record names.
	recorded map[string]*lineage
	// served holds the EtcdClusters that clients were let in to.
	served map[string]bool
	// was is the state before the call that is being carried out.
	was map[*lineage]standing
	// gone are the UIDs of clusters that were deleted.
	gone map[string]bool
	// left are the PVCs, by their names, of a cluster whose object vanished.
	left map[string]types.UID
	// sizeChanged is when the declared size changed last, sleepy when it was last 0.
	sizeChanged, sleepy time.Duration
	unsettled           int
	// accepted holds pairs of authorities and certificates that were found to fit.
	accepted [][2][]byte
	// short is true while a call is carried out that costs a small cluster its quorum for
	// a moment.
	short bool
	// late is true while a call is carried out whose controller has given it up.
	late bool
	// truthful is when the status was last right about each of its statements, or could
	// not be.
	truthful []time.Duration
	// made holds the owners of pods that were made for a version, with the version.
	made map[[2]string]bool
	// unwitnessed are clusters whose object came back, after they were deleted, with a status
	// from before they have served.
	unwitnessed map[string]bool
	// restored holds the cluster ID that each recovery of a cluster has led to.
	restored map[[2]string]string
}

// standing says whether an etcd can serve, now and after whoever is down came back.
type standing struct{ recoverable, live bool }

// look is what a controller has looked at since it began to reconcile.
type look struct {
	started time.Duration
	// owner is the UID of the cluster that it acts for.
	owner string
	// disturbed is the number of disturbances then.
	disturbed int
	live      map[string]types.UID
	// listedAt is when a quorum confirmed the member list that was read; members is
	// that list, and healthy who answered and had a leader.
	fromQuorum bool
	listedAt   time.Duration
	members    *membership
	healthy    []uint64
	leaders    map[uint64]int
	changed    bool
	// refused holds when nothing listened where a member would, by the name of its pod.
	refused map[string]time.Duration
	// applied is how many entries each who answered had applied, by the name of its pod.
	applied map[string]int
}

func newChecks(w *World) *checks {
	return &checks{w: w, recorded: map[string]*lineage{}, served: map[string]bool{}, gone: map[string]bool{}, made: map[[2]string]bool{}, restored: map[[2]string]string{}, unwitnessed: map[string]bool{}, truthful: make([]time.Duration, len(statements)), sleepy: -time.Hour, sizeChanged: -time.Hour}
}

func (c *checks) violated(rule, format string, args ...any) {
	if c.found != nil || c.late {
		return
	}
	c.found = &Violation{Rule: rule, What: fmt.Sprintf(format, args...), At: c.w.now}
	c.w.trace("VIOLATION %s", c.found)
}

// saw remembers an object that was read live.
func (l *look) saw(k kind, object metav1.Object) {
	if l.live == nil {
		l.live = map[string]types.UID{}
	}
	l.live[kindNames[k]+"/"+object.GetName()] = object.GetUID()
}

// asked remembers who answered, and where nothing listened.
func (l *look) asked(w *World, results map[string]etcd.StatusResult) {
	l.healthy, l.leaders, l.refused = nil, map[uint64]int{}, map[string]time.Duration{}
	if l.applied == nil {
		l.applied = map[string]int{}
	}
	for name, r := range results {
		if errors.Is(r.Err, etcd.ErrUnavailable) {
			l.refused[name] = w.now
		}
	}
	for _, p := range w.etcd.processes {
		if r, asked := results[p.run.name]; asked && r.Err == nil {
			l.applied[p.run.name] = p.applied
		}
		if p.leader != 0 && p.serves && !w.etcd.hidden(p.run) {
			l.healthy = append(l.healthy, p.dir.id)
			l.leaders[p.leader]++
		}
	}
}

// listed remembers the member list that was read.
func (l *look) listed(w *World, from *lineage) {
	l.fromQuorum, l.listedAt, l.members, l.changed = true, w.now, from.members, false
}

// leads is true if most of those who answered followed a member.
func (l *look) leads(id uint64) bool {
	total := 0
	for _, n := range l.leaders {
		total += n
	}
	return 2*l.leaders[id] > total
}

// serving counts the voters that answered, leaving one out.
func (l *look) serving(except uint64) int {
	n := 0
	for i := range l.members.peers {
		if p := &l.members.peers[i]; !p.learner && p.id != except && slices.Contains(l.healthy, p.id) {
			n++
		}
	}
	return n
}

// judge returns how an etcd stands.
func (c *checks) judge(l *lineage) standing {
	return standing{recoverable: c.recoverable(l), live: c.serves(l)}
}

// serves is true if a quorum of an etcd is there.
func (c *checks) serves(l *lineage) bool {
	live := 0
	for i := range l.members.peers {
		m := &l.members.peers[i]
		if m.learner {
			continue
		}
		if p := c.w.etcd.member(l, m.id); p != nil && !p.dir.doomed && p.leader != 0 && !c.w.etcd.upgrading[p.run.uid] {
			live++
		}
	}
	return live >= l.members.quorum()
}

// recoverable is true if a member could win an election once everybody is back whose
// data is kept. Each counts by the list that it has applied itself.
func (c *checks) recoverable(l *lineage) bool {
	for i := range l.members.peers {
		d := l.dirs[l.members.peers[i].id]
		if d == nil || d.doomed || d.destroyed || !d.members.isVoter(d.id) {
			continue
		}
		kept := 0
		for j := range d.members.peers {
			m := &d.members.peers[j]
			other := l.dirs[m.id]
			if !m.learner && (other == nil && c.mayStart(m) || other != nil && !other.doomed && !other.destroyed) {
				kept++
			}
		}
		if kept >= d.members.quorum() {
			return true
		}
	}
	return false
}

// mayStart is true if a member that has never run has a pod that will run it, or a
// volume for which a pod will be made.
func (c *checks) mayStart(m *peer) bool {
	name, _, _ := strings.Cut(m.url[strings.LastIndexByte(m.url, '/')+1:], ".")
	pod, found := lookup[*corev1.Pod](c.w.store, kindPod, name)
	claim, kept := lookup[claimObject](c.w.store, kindClaim, name)
	return found && pod.DeletionTimestamp == nil && !finished(pod) || kept && claim.DeletionTimestamp == nil
}

// before and after frame a call of a controller.
func (c *checks) before(by *manager, _ string) {
	c.acting, c.short = by, false
	c.was = map[*lineage]standing{}
	for _, l := range c.w.etcd.lineages {
		if c.matters(l) {
			c.was[l] = c.judge(l)
		}
	}
}

func (c *checks) after(by *manager, name string) {
	c.acting = nil
	excused := by.look.disturbed != c.w.disturbances
	for _, l := range c.w.etcd.lineages {
		was, known := c.was[l]
		if !known {
			continue
		}
		is := c.judge(l)
		switch {
		case was.recoverable && !is.recoverable && !excused:
			c.violated("S1", "%s (%s) took the quorum of %s for good", name, by.name, describeMembers(l.members))
		case was.recoverable && !is.recoverable:
			l.lost = true
		case was.live && !is.live && !c.w.disturbed(&by.look) && !c.sleeping() && !l.secondVoter() && !c.short:
			c.violated("S2", "%s (%s) took the quorum of %s", name, by.name, describeMembers(l.members))
		}
	}
}

// secondVoter is true for an etcd that knows no learners and has just been given its
// second member: until that has started there is no quorum, whatever one does.
func (l *lineage) secondVoter() bool {
	return l.members.voters() == 2 && l.members.unsettled() == 1 && l.members.peers[0].learner == l.members.peers[1].learner && !l.learners
}

// matters is true for an etcd that clients were let in to, and whose cluster is still
// declared. Until then the seed may start anew.
func (c *checks) matters(l *lineage) bool {
	if l.lost && c.judge(l).recoverable {
		l.lost = false // who was doomed lived long enough to let the others go on
	}
	return c.recorded[l.owner] == l && c.served[l.owner] && !c.gone[l.owner] && !l.lost && !l.replaced
}

// sleeping is true if the cluster is, or was a moment ago, declared to have no pods.
func (c *checks) sleeping() bool { return c.w.now-c.sleepy < 2*time.Minute }

// doomed is called when the end of a data directory was decided.
func (c *checks) doomed(d *dataDir) {
	if d.lineage == nil || c.acting != nil || d.lineage.lost || c.gone[d.lineage.owner] {
		return
	}
	if !c.judge(d.lineage).recoverable && c.recorded[d.lineage.owner] == d.lineage {
		d.lineage.lost = true
		c.w.trace("the quorum is lost for good: %s", describeMembers(d.lineage.members))
	}
}

// elected: a leader must have every write that was acknowledged.
func (c *checks) elected(p *process) {
	h := c.w.histories[p.dir.lineage.owner]
	if h == nil || h.lineage != p.dir.lineage {
		return
	}
	if lost, found := h.lostBy(p.dir); found {
		c.violated("S1", "%s leads without write %d, which was acknowledged as entry %d", p.run.name, lost.number, lost.index)
	}
}

// beforeEviction: an eviction that the budget allows must not take the quorum, if
// everybody who is called ready serves.
func (c *checks) beforeEviction(pod *corev1.Pod, budget bool) {
	if !budget {
		return
	}
	for _, l := range c.w.etcd.lineages {
		p := c.w.etcd.byIP(pod.Status.PodIP)
		if !c.matters(l) || p == nil || p.dir.lineage != l || !l.members.isVoter(p.dir.id) || !c.judge(l).live {
			continue
		}
		serving := 0
		for i := range l.members.peers {
			m := &l.members.peers[i]
			if m.learner {
				continue
			}
			other := c.w.etcd.member(l, m.id)
			serves := other != nil && other.leader != 0 && !other.dir.doomed
			if known, found := lookup[*corev1.Pod](c.w.store, kindPod, m.name); found &&
				((isReady(known) && known.DeletionTimestamp == nil) != serves || !guarded(known) || known.Labels[resources.LabelApp] == "") {
				return // Kubernetes does not know yet, the controller was stopped after a promotion, or a person took it out
			}
			if serves && m.id != p.dir.id {
				serving++
			}
		}
		if serving < l.members.quorum() {
			c.violated("budget", "an eviction of %s was allowed: %d of %s remain", pod.Name, serving, describeMembers(l.members))
		}
	}
}

// guarded is true for a pod that the disruption budget counts.
func guarded(pod *corev1.Pod) bool {
	role := pod.Labels[resources.LabelRole]
	return role == resources.RoleVoter || role == resources.RoleLeaving
}

func ownerOf(object metav1.Object) string {
	if ref := metav1.GetControllerOf(object); ref != nil {
		return string(ref.UID)
	}
	return object.GetAnnotations()[resources.AnnotationClusterUID]
}
