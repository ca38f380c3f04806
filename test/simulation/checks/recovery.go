// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// FillingRecoveryMember is called when the recovery member is about to be filled.
func (c *Checks) FillingRecoveryMember(l *simetcd.Lineage, pod *corev1.Pod) {
	record := (*v1beta2.RecoveryStatus)(nil)
	if written := c.record(); written != nil {
		record = resources.ParseRecord(written).Recovery
	}
	if !resources.IsHidden(pod.Labels, schedules.ClusterName) {
		c.w.Violated("S4", "recovery member %s is filled while it is published to clients", l.BootstrapMember)
	}
	if l.Token == l.Owner || !strings.HasPrefix(l.Token, l.Owner) {
		c.w.Violated("S4", "recovery member %s has token %q", l.BootstrapMember, l.Token)
	}
	if record == nil || record.RecoveryMember != l.BootstrapMember {
		c.w.Trace("recovery member %s is filled although the record no longer names it", l.BootstrapMember)
	}
}

// ReadingInUse is called when the recovery member is about to read a volume on which an etcd runs. The
// agent does not read it then. Nothing but that tells of a process that still runs after a user has
// forced the deletion of its pod.
func (c *Checks) ReadingInUse(d *simetcd.DataDir, pod *corev1.Pod) {
	if c.w.Forced[d.Name] {
		return
	}
	c.w.Violated("S5", "recovery member %s reads the volume of %s, on which etcd runs", pod.Name, d.Name)
}

// recoversVolume checks that the recovery member has every acknowledged write that is on the volume that
// it read.
func (c *Checks) recoversVolume(l *simetcd.Lineage, record *v1beta2.RecoveryStatus) {
	h, filled := c.w.Histories[l.Owner], c.w.Etcd.RecoveryMember(record)
	if record.Source.PVC == "" || h == nil || h.Lineage != l || filled == nil {
		return
	}
	for _, d := range l.Dirs {
		if d.Name != record.Source.Member {
			continue
		}
		for _, a := range h.Acked {
			if d.Holds(a) && !filled.Holds(a) {
				c.w.Violated("S1", "recovery without write %d, which was acknowledged as entry %d, and the volume of %s has it", a.Number, a.Index, d.Name)
				return
			}
		}
	}
}

// isReached is true if a quorum of an etcd serves, with a member that the controller reaches.
func (c *Checks) isReached(l *simetcd.Lineage) bool {
	return c.w.Standing(l).Live && slices.ContainsFunc(c.w.Etcd.Processes, func(p *simetcd.Process) bool {
		return p.Dir.Lineage == l && p.Serves && !c.w.Etcd.IsHidden(p.Run)
	})
}

// justElected is true if an etcd may have been without a leader when the controller probed its
// members for the last time before the cutover. ADR 6 says what can be lost then.
func (c *Checks) justElected(l *simetcd.Lineage) bool {
	at, found := c.elected[l]
	return found && c.w.Elapsed-at < lastProbe
}

// lastProbe bounds how long the last probe takes, with the write of the record after it.
const lastProbe = 4 * time.Second

// record returns the record of the one cluster; nil if there is none.
func (c *Checks) record() *corev1.ConfigMap {
	written, _ := kubernetes.Lookup[*corev1.ConfigMap](c.w.Store, kubernetes.KindRecord, schedules.RecordName)
	return written
}

// cuttingOver is called when the record says that the old members are decommissioned.
func (c *Checks) cuttingOver(written *corev1.ConfigMap) {
	record := resources.ParseRecord(written).Recovery
	c.automaticRecovery(written, record)
	c.backFromCutover(c.recorded[simetcd.OwnerOf(written)], record)
	if record == nil || record.Phase != v1beta2.RecoveryPhaseCutover && record.Phase != v1beta2.RecoveryPhaseCleaning {
		return
	}
	c.restoresOnce(simetcd.OwnerOf(written), record.ID, record.ClusterID)
	l := c.recorded[simetcd.OwnerOf(written)]
	if l == nil || l.Replaced || fmt.Sprintf("%x", l.ClusterID) == record.ClusterID {
		return
	}
	if c.acting != nil && record.Trigger != v1beta2.RecoveryTriggerRestore && c.w.Standing(l).Live && !c.justElected(l) && !c.w.IsDisturbed(&c.acting.Observed) {
		c.w.Violated("S1", "recovery of %s, whose quorum serves", simetcd.DescribeMembers(l.Members))
	}
	if c.acting != nil && c.w.Uncopied[record.ID] && c.isReached(l) && !c.justElected(l) && !c.w.IsDisturbed(&c.acting.Observed) {
		c.w.Violated("S6", "restore %s replaces %s, which responds again and whose data nothing stores", record.ID, simetcd.DescribeMembers(l.Members))
	}
	c.recoversAcknowledgedWrites(l, record)
	c.recoversVolume(l, record)
	l.Replaced = true
	c.w.Stats.Recovered++
	c.w.Trace("replaced: %s", simetcd.DescribeMembers(l.Members))
}

// backFromCutover is for a cutover that is abandoned before a client reaches the recovery member: the old
// members stay, and all that is expected of a cluster is expected of them again.
func (c *Checks) backFromCutover(l *simetcd.Lineage, record *v1beta2.RecoveryStatus) {
	if l == nil || !l.Replaced || record == nil || record.Phase != v1beta2.RecoveryPhaseAbandoned || record.OldClusterID != fmt.Sprintf("%x", l.ClusterID) {
		return
	}
	l.Replaced = false
	c.w.Trace("back: %s", simetcd.DescribeMembers(l.Members))
}

// waitsHidden is true for a recovery member that no client reaches yet. A restore of a cluster that
// is being started fills one beside the bootstrap member, and decommissions the bootstrap member
// before the recovery member is published.
func (c *Checks) waitsHidden(l *simetcd.Lineage) bool {
	return l.Predecessor != nil && c.recorded[l.Owner] != l && !c.Published[l.Owner]
}

// published is called when the record names the etcd of a recovery member, which serves clients
// from then on. Every member of an earlier etcd that a client could reach must have ended.
func (c *Checks) published(is *simetcd.Lineage) {
	if is.Predecessor == nil {
		return
	}
	for _, p := range c.w.Etcd.Processes {
		pod, found := p.Run.Pod()
		if p.Dir.Lineage == is || p.Dir.Lineage.Owner != is.Owner || !found || kubernetes.HasFinished(pod) || resources.IsHidden(pod.Labels, schedules.ClusterName) {
			continue
		}
		c.w.Violated("S1", "recovery member %s is published, and %s of the etcd before runs", is.BootstrapMember, p.Run.Name())
	}
}

// isFilledAgain is true for a recovery member that is filled a second time under its name, after
// the members of its first etcd and their data were deleted. The objects of the API were brought back
// from an earlier time, so that the status shows the recovery as under way again.
func (c *Checks) isFilledAgain(was, is *simetcd.Lineage) bool {
	return was.ClusterID == is.ClusterID && was.Predecessor != nil && !c.hasData(was)
}

// recoversAcknowledgedWrites checks that the recovery member has every acknowledged write of each
// member that responded to the controller, unless a user has chosen the source.
func (c *Checks) recoversAcknowledgedWrites(l *simetcd.Lineage, record *v1beta2.RecoveryStatus) {
	h := c.w.Histories[l.Owner]
	filled := c.w.Etcd.RecoveryMember(record)
	if c.acting == nil || record.Trigger == v1beta2.RecoveryTriggerRestore || record.Member != "" || c.w.IsDisturbed(&c.acting.Observed) ||
		filled == nil || h == nil || h.Lineage != l {
		return
	}
	for _, p := range c.w.Etcd.Processes {
		pod, found := p.Run.Pod()
		if p.Dir.Lineage != l || !found || pod.DeletionTimestamp != nil {
			continue
		}
		for _, a := range h.Acked {
			if a.Index <= c.acting.Observed.Applied[p.Run.Name()] && p.Dir.Holds(a) && !filled.Holds(a) {
				c.w.Violated("S1", "recovery without write %d, which was acknowledged as entry %d, and %s has it", a.Number, a.Index, p.Run.Name())
				return
			}
		}
	}
}

// automaticRecovery checks that no recovery begins by itself while enough members for a quorum may
// come back. What each of them has applied decides that. It is called with every record.
func (c *Checks) automaticRecovery(written *corev1.ConfigMap, record *v1beta2.RecoveryStatus) {
	if record == nil || record.Phase != v1beta2.RecoveryPhaseFilling || record.Trigger != v1beta2.RecoveryTriggerAutomatic {
		return
	}
	if l := c.recorded[simetcd.OwnerOf(written)]; l != nil && c.acting != nil && !c.w.IsDisturbed(&c.acting.Observed) && c.w.IsRecoverable(l) {
		c.w.Violated("S1", "a recovery begins by itself although %s may come back", simetcd.DescribeMembers(l.Members))
	}
}

// continueIn makes the history of a cluster that of the etcd that follows. Writes of the etcd before that the
// following one does not have were lost with the quorum.
func (c *Checks) continueIn(was, is *simetcd.Lineage) {
	h := c.w.Histories[is.Owner]
	if h == nil || h.Lineage != was {
		return
	}
	h.Lineage = is
	var kept []simetcd.AckedWrite
	for _, a := range h.Acked {
		if slices.ContainsFunc(is.Order, func(id uint64) bool { return is.Dirs[id].Holds(a) }) {
			kept = append(kept, a)
		}
	}
	c.w.Stats.WritesLost += len(h.Acked) - len(kept)
	h.Acked = kept
}

// Returned is called when the object of a cluster that may have been deleted is back,
// perhaps for the second time, with another status.
func (c *Checks) Returned(cluster kubernetes.EtcdCluster) {
	uid := string(cluster.UID)
	if op := cluster.Status.Operation; op != nil && op.IsOver() {
		c.endedBefore = op.ID
	}
	if cluster.DeletionTimestamp != nil {
		c.Deleted[uid] = true // its owner has deleted it, and so is the object that came back
		return
	}
	if _, before := c.unwitnessed[uid]; !before && !c.Deleted[uid] {
		return
	}
	phase := cluster.Status.Phase
	isNew := phase == v1beta2.ClusterPhaseNone || phase == v1beta2.ClusterPhaseCreating
	// The pods that were made while nothing showed that the cluster has served start all the same.
	isMadeAgain := c.unwitnessed[uid] && !c.hasAnyData(uid) && c.hasPods(uid)
	c.unwitnessed[uid] = isNew || isMadeAgain
	if !c.Deleted[uid] {
		return
	}
	delete(c.Deleted, uid)
	c.forgetRestores(uid)
	if l := c.recorded[uid]; l != nil {
		l.QuorumLost = !c.w.Standing(l).Recoverable
	}
}

// forgetDeleted forgets a cluster that its owner has deleted with all its objects, and whose
// EtcdCluster is back with a status from before the cluster served. No object is left by which a
// controller could tell it from a new cluster (ADR 11). Its data must no longer exist, since a second
// bootstrap member would endanger the data.
func (c *Checks) forgetDeleted(uid string) {
	if !c.unwitnessed[uid] || c.hasAnyData(uid) {
		return
	}
	delete(c.recorded, uid)
	delete(c.Published, uid)
	delete(c.w.Histories, uid)
}

// hasData is true if data of an etcd is left that its cluster owns. The controller has released
// the PVC of a removed member to the user, and no rule reads or writes that PVC again.
func (c *Checks) hasData(l *simetcd.Lineage) bool {
	return slices.ContainsFunc(l.Order, func(id uint64) bool {
		d := l.Dirs[id]
		pvc, found := kubernetes.Lookup[kubernetes.PVC](c.w.Store, kubernetes.KindPVC, d.Name)
		released := found && c.w.Etcd.PVCs[string(pvc.UID)] == d && simetcd.OwnerOf(pvc) != l.Owner
		return !d.Doomed && !d.Destroyed && !released
	})
}

// forgetRestores forgets the restores of a cluster that its owner has deleted and whose object is
// back, if neither its record nor its data is left. Then nothing shows that a restore was carried
// out, so an EtcdRestore that had not ended is carried out as a new one.
func (c *Checks) forgetRestores(uid string) {
	if written := c.record(); written != nil && simetcd.OwnerOf(written) == uid || c.hasAnyData(uid) {
		return
	}
	for key := range c.restored {
		if key[0] == uid {
			delete(c.restored, key)
		}
	}
}

func (c *Checks) hasPods(uid string) bool {
	return slices.ContainsFunc(c.w.Store.List(kubernetes.KindPod), func(pod metav1.Object) bool { return simetcd.OwnerOf(pod) == uid })
}

// hasAnyData is true if data is left that a cluster owns.
func (c *Checks) hasAnyData(uid string) bool {
	return slices.ContainsFunc(c.w.Etcd.Lineages, func(l *simetcd.Lineage) bool { return l.Owner == uid && c.hasData(l) })
}

// restoresOnce checks that a restore replaces the data of a cluster once: a second time would lose
// everything that was written since. It does not hold for a cluster whose data no longer exists, as
// after the deletion of its namespace. The record of the restore was deleted with that data, and
// only the backup is left.
func (c *Checks) restoresOnce(owner, id, clusterID string) {
	key := [2]string{owner, id}
	left := slices.ContainsFunc(c.w.Etcd.Lineages, func(l *simetcd.Lineage) bool {
		return l.Owner == owner && fmt.Sprintf("%x", l.ClusterID) != clusterID && l.Remains()
	})
	if before, done := c.restored[key]; done && before != clusterID && left {
		c.w.Violated("S6", "restore %s is carried out a second time, and replaces what was written since then", id)
	}
	c.restored[key] = clusterID
}
