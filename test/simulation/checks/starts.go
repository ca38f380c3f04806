// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"k8s.io/apimachinery/pkg/util/version"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
)

// Bootstrapping is called when etcd is about to start a new cluster.
func (c *Checks) Bootstrapping(l *simetcd.Lineage) {
	if l.Token != l.Owner {
		c.w.Violated("S4", "bootstrap member %s has token %q and not the UID of its cluster", l.BootstrapMember, l.Token)
	}
	c.forgetDeleted(l.Owner)
	if was := c.recorded[l.Owner]; was != nil && was.ClusterID == l.ClusterID && !c.Published[l.Owner] {
		c.recorded[l.Owner] = l // the same bootstrap member once more, as the bootstrap record says
	}
	if c.Published[l.Owner] {
		c.w.Violated("S4", "bootstrap member %s of a cluster that has served", l.BootstrapMember)
	}
	for _, other := range c.w.Etcd.Lineages {
		if other.Owner == l.Owner && other.BootstrapMember != l.BootstrapMember && c.hasData(other) && !c.waitsHidden(other) {
			c.w.Violated("S4", "a second bootstrap member %s beside %s", l.BootstrapMember, other.BootstrapMember)
		}
	}
}

// Joining is called when etcd is about to fill an empty directory as a member.
func (c *Checks) Joining(in simetcd.Container, d *simetcd.DataDir, id uint64, l *simetcd.Lineage) {
	if before := l.Dirs[id]; before != nil && before != d {
		c.w.Violated("S5", "%s starts as member %x on an empty directory, and that member had one", in.Name(), id)
	}
}

// Starting is called when a container is about to run etcd on a directory.
func (c *Checks) Starting(r *kubernetes.Run, d *simetcd.DataDir) {
	if d.IsEmpty() {
		return
	}
	if d.Name != r.Name() {
		c.w.Violated("S5", "pod %s runs on the data of %s", r.Name(), d.Name)
	}
	if m := d.Lineage.Members.ByURL(d.Url); m != nil && m.Id != d.Id {
		c.w.Violated("S5", "pod %s of member %x runs on the data of member %x, which had its name", r.Name(), m.Id, d.Id)
	}
}

// Started is called when etcd has started: no version may be skipped or taken back, and
// none begun from a patch release that is not safe for it.
func (c *Checks) Started(p *simetcd.Process) {
	to, err := version.ParseSemantic(p.Version)
	if err != nil || !c.Matters(p.Dir.Lineage) || p.Dir.Lineage.VersionUnknown {
		return
	}
	low := p.Dir.Lineage.LowestVersionFor(p.Dir)
	if low == nil || to.Minor() == low.Minor() {
		return
	}
	unsafe := low.Minor() == 5 && low.Patch() < 26 || low.Minor() == 6 && low.Patch() < 11
	if to.Minor() < low.Minor() || to.Minor() > low.Minor()+1 || unsafe {
		c.w.Violated("S8", "%s starts with %s, and the lowest version was %s", p.Run.Name(), p.Version, low)
	}
}

// Resized is called when a user changes the size.
func (c *Checks) Resized(size int32) {
	c.sizeChanged = c.w.Elapsed
	if size == 0 {
		c.sleepy = c.w.Elapsed
	}
}

// RemovingPVC is called when a PVC is about to go.
func (c *Checks) RemovingPVC(pvc kubernetes.PVC) {
	if uid, kept := c.KeptPVCs[pvc.Name]; kept && uid == pvc.UID {
		c.w.Violated("S5", "PVC %s goes, and its cluster was not deleted: the API lost it", pvc.Name)
	}
}
