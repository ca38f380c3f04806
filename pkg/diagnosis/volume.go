// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"
)

// A member that starts without a quorum never responds: etcd serves clients only after its first
// proposal was committed. So after a restart of the only survivor no member responds for ever, and
// its data is to be had only from its volume. A recovery reads it while no etcd runs on it.

// VolumeSources returns the voters whose PVC a recovery could read, by name. There are none while a
// member responds, and none unless it is proven that the loss is permanent: the pod of the source
// is stopped, and a quorum may need it.
func (c *Cluster) VolumeSources() []*Member {
	if !c.isPermanent() {
		return nil
	}
	return c.volumeSourcesOfPermanentLoss()
}

// volumeSourcesOfPermanentLoss is VolumeSources of a loss that is proven to be permanent.
func (c *Cluster) volumeSourcesOfPermanentLoss() []*Member {
	if len(c.RankSources()) > 0 {
		return nil
	}
	var list []*Member
	for i := range c.Members {
		if m := &c.Members[i]; m.Started && !m.isLearner() && c.HasPVC(m.Name) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b *Member) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (c *Cluster) isPermanent() bool {
	if c.PermanentByStatus != nil {
		return *c.PermanentByStatus
	}
	return c.QuorumLoss().Permanent
}

// OnlyVolume returns the member whose PVC holds all that is left of the data: no other member may
// come back, not even one that may vote by now. It returns nil if there is no such member. Only from
// such a PVC a recovery begins without a request.
func (c *Cluster) OnlyVolume() *Member {
	sources := c.VolumeSources()
	if len(sources) != 1 || !c.isOnlyVolume(sources[0]) {
		return nil
	}
	return sources[0]
}

// isOnlyVolume is true if no member but source may come back, and source has no quorum. A member whose
// container runs and whose pod is not ready shows that. The kubelet calls a pod ready whose member serves
// with a quorum, such as the only one that is left of a status from before the others were removed. A pod
// that does not run shows nothing: such a member may serve when it starts.
func (c *Cluster) isOnlyVolume(source *Member) bool {
	if p := c.pod(source.Name); source.Name != c.StoppedSource && (p == nil || p.Ready || !p.Running) {
		return false
	}
	return !slices.ContainsFunc(c.Members, func(m Member) bool { return m.Name != source.Name && c.MayComeBack(m.Name) })
}

// planFromVolume plans a recovery from the PVC of the requested member, or of the only one that
// has a PVC.
func (c *Cluster) planFromVolume(requested string) (*RecoveryPlan, error) {
	sources := c.VolumeSources()
	if len(sources) == 0 {
		return nil, ErrNoSource
	}
	source := sources[0]
	if requested != "" {
		i := slices.IndexFunc(sources, func(m *Member) bool { return m.Name == requested })
		if i < 0 {
			return nil, ErrNoVolume
		}
		source = sources[i]
	} else if len(sources) > 1 {
		return nil, fmt.Errorf("%w: %s", ErrSeveralVolumes, namesOf(sources))
	}
	return &RecoveryPlan{Source: source, PVC: source.Name, EstimatedDataLoss: c.estimateLossOfVolume(source)}, nil
}

// estimateLossOfVolume says which data a cluster that continues from a PVC will not have.
func (c *Cluster) estimateLossOfVolume(source *Member) string {
	text := fmt.Sprintf("Writes that member %s had not received before its quorum was lost. How many is unknown, because the member does not respond. "+
		"Its pod is stopped, and its PVC is read and not changed.", source.Name)
	for _, name := range c.unavailable(source) {
		text += fmt.Sprintf(" Member %s is not the source and may hold newer writes.", name)
	}
	if source.Limitation != "" {
		text += " " + source.Limitation + "."
	}
	return text
}

func namesOf(members []*Member) string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}
