// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// Checks watches everything that happens for a broken rule. It counts for itself and
// knows the truth.
type Checks struct {
	w *manager.World
	// acting is the controller whose call is being carried out.
	acting *manager.Manager
	// recorded holds, for each EtcdCluster, the etcd that its record names.
	recorded map[string]*simetcd.Lineage
	// imageSet is when something else than the controller last set the image of a pod, by its name.
	imageSet map[string]time.Duration
	// Published holds the EtcdClusters that were published to clients.
	Published map[string]bool
	// was is the state before the call that is being carried out.
	was map[*simetcd.Lineage]kubernetes.Standing
	// Deleted are the UIDs of clusters that were deleted.
	Deleted map[string]bool
	// KeptPVCs are the PVCs, by their names, of a cluster whose object vanished.
	KeptPVCs map[string]types.UID
	// sizeChanged is when the desired size changed last, sleepy when it was last 0.
	sizeChanged, sleepy time.Duration
	unsettled           int
	// lostCAs are the clusters whose CA was lost, until all members trust the next one.
	lostCAs map[string]*lostCA
	// short is true while a call is carried out that costs a small cluster its quorum for
	// a moment.
	short bool
	// Rest is how long a cluster must stay as declared at the end.
	Rest time.Duration
	// truthful is when the status was last right about each of its statements, or could
	// not be.
	truthful []time.Duration
	// made holds the owners of pods that were made for a version, with the version.
	made map[[2]string]bool
	// unwitnessed are clusters whose object came back, after they were deleted, with a status
	// from before they have served.
	unwitnessed map[string]bool
	// endedBefore is the operation that had ended in the object of a cluster that the API brought back
	// last. The members that it names may have joined since.
	endedBefore string
	// restored holds the cluster ID that each recovery of a cluster has led to.
	restored map[[2]string]string
	// elected is when an etcd elected a leader last.
	elected map[*simetcd.Lineage]time.Duration
	// pace is how much the controllers do while nothing happens.
	pace pace
}

// New watches a world.
func New(w *manager.World) *Checks {
	return &Checks{w: w, Rest: restTime, recorded: map[string]*simetcd.Lineage{}, Published: map[string]bool{}, Deleted: map[string]bool{}, lostCAs: map[string]*lostCA{}, made: map[[2]string]bool{}, imageSet: map[string]time.Duration{}, restored: map[[2]string]string{}, unwitnessed: map[string]bool{}, elected: map[*simetcd.Lineage]time.Duration{}, truthful: make([]time.Duration, len(statements)), sleepy: -time.Hour, sizeChanged: -time.Hour}
}

// Before keeps how each etcd stands before a call of a controller.
func (c *Checks) Before(by *manager.Manager, _ string) {
	c.acting, c.short = by, false
	c.was = map[*simetcd.Lineage]kubernetes.Standing{}
	for _, l := range c.w.Etcd.Lineages {
		if c.Matters(l) {
			c.was[l] = c.w.Standing(l)
		}
	}
}

// After compares the quorum of each etcd with what it was before the call.
func (c *Checks) After(by *manager.Manager, name string) {
	c.acting = nil
	c.countWrite()
	excused := by.Observed.Disturbed != c.w.Disturbances
	for _, l := range c.w.Etcd.Lineages {
		was, known := c.was[l]
		if !known {
			continue
		}
		is := c.w.Standing(l)
		switch {
		case was.Recoverable && !is.Recoverable && !excused:
			c.w.Violated("S1", "%s (%s) took the quorum of %s permanently", name, by.Name, simetcd.DescribeMembers(l.Members))
		case was.Recoverable && !is.Recoverable:
			l.QuorumLost = true
		case was.Live && !is.Live && !c.w.IsDisturbed(&by.Observed) && !c.isSleeping() && !l.AwaitsSecondVoter() && !c.short:
			c.w.Violated("S2", "%s (%s) took the quorum of %s", name, by.Name, simetcd.DescribeMembers(l.Members))
		}
	}
}

// Matters is true for an etcd that was published to clients, and whose cluster is still
// declared. Until then the bootstrap member may start again.
func (c *Checks) Matters(l *simetcd.Lineage) bool {
	if l.QuorumLost && c.w.Standing(l).Recoverable {
		l.QuorumLost = false // the doomed member lived long enough to let the others go on
	}
	return c.recorded[l.Owner] == l && c.Published[l.Owner] && !c.Deleted[l.Owner] && !l.QuorumLost && !l.Replaced
}

// isSleeping is true if the cluster is, or was a moment ago, declared to have no pods.
func (c *Checks) isSleeping() bool { return c.w.Elapsed-c.sleepy < 2*time.Minute }

// Doomed is called when the end of a data directory was decided.
func (c *Checks) Doomed(d *simetcd.DataDir) {
	if d.Lineage == nil || c.acting != nil || d.Lineage.QuorumLost || c.Deleted[d.Lineage.Owner] {
		return
	}
	if !c.w.Standing(d.Lineage).Recoverable && c.recorded[d.Lineage.Owner] == d.Lineage {
		if !c.w.Plan.Deadly && c.onlyCut() && c.Matters(d.Lineage) {
			c.w.Violated("S1", "faults that destroy no quorum did: %s", simetcd.DescribeMembers(d.Lineage.Members))
		}
		d.Lineage.QuorumLost = true
		c.w.Trace("the quorum is lost permanently: %s", simetcd.DescribeMembers(d.Lineage.Members))
	}
}

// onlyCut is true for a schedule with a partition and without a rollback of the operator state.
// What a user does about a cluster after such a rollback may destroy its quorum.
func (c *Checks) onlyCut() bool {
	has := func(k schedules.EventKind) bool {
		return slices.ContainsFunc(c.w.Plan.Events, func(e schedules.Event) bool { return e.Kind == k })
	}
	return has(schedules.EventSever) && !has(schedules.EventOldAPI)
}

// Elected makes sure of S1: a leader must have every write that was acknowledged.
func (c *Checks) Elected(p *simetcd.Process) {
	c.elected[p.Dir.Lineage] = c.w.Elapsed
	h := c.w.Histories[p.Dir.Lineage.Owner]
	if h == nil || h.Lineage != p.Dir.Lineage {
		return
	}
	if lost, found := h.LostBy(p.Dir); found {
		c.w.Violated("S1", "%s leads without write %d, which was acknowledged as entry %d", p.Run.Name(), lost.Number, lost.Index)
	}
}

// BeforeEviction makes sure that the budget is right: an eviction that it allows must not take the quorum, if
// all members that are called ready serve.
func (c *Checks) BeforeEviction(pod *corev1.Pod, budget bool) {
	if !budget {
		return
	}
	for _, l := range c.w.Etcd.Lineages {
		p := c.w.Etcd.ByIP(pod.Status.PodIP)
		if !c.Matters(l) || p == nil || p.Dir.Lineage != l || !l.Members.IsVoter(p.Dir.Id) || !c.w.Standing(l).Live {
			continue
		}
		serving := 0
		for i := range l.Members.Peers {
			m := &l.Members.Peers[i]
			if m.Learner {
				continue
			}
			other := c.w.Etcd.Member(l, m.Id)
			serves := other != nil && other.Leader != 0 && !other.Dir.Doomed && !other.Dir.Hung
			if known, found := kubernetes.Lookup[*corev1.Pod](c.w.Store, kubernetes.KindPod, m.Name); found &&
				((kubernetes.IsReady(known) && known.DeletionTimestamp == nil) != serves || !c.isGuarded(known) || known.Labels[resources.LabelApp] == "") {
				return // Kubernetes does not know yet, the controller was stopped after a promotion, or a person took it out
			}
			if serves && m.Id != p.Dir.Id {
				serving++
			}
		}
		if serving < l.Members.Quorum() {
			c.w.Violated("budget", "an eviction of %s was allowed: %d of %s remain", pod.Name, serving, simetcd.DescribeMembers(l.Members))
		}
	}
}

// isGuarded is true for a pod that a disruption budget counts.
func (c *Checks) isGuarded(pod *corev1.Pod) bool {
	if resources.IsHidden(pod.Labels, schedules.ClusterName) {
		_, found := kubernetes.Lookup[kubernetes.Budget](c.w.Store, kubernetes.KindBudget, resources.RecoveryBudgetName(schedules.ClusterName))
		return found
	}
	role := pod.Labels[resources.LabelRole]
	return (role == resources.RoleVoter || role == resources.RoleDraining) && pod.Labels[resources.LabelCluster] != ""
}
