// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// UnstoredGrace is how long after the loss of the quorum a restore waits for a member that does not respond, and whose
// writes end with its pod. That pod may have ended permanently.
const UnstoredGrace = 15 * time.Minute

// Unstored returns the name of a member whose pod may hold writes that neither a PVC nor the backup of the member source
// has; empty if there is none. Such a member has no PVC, and it does not respond, or has read the log further than source.
// Members that do not respond count until UnstoredGrace after the loss of the quorum. Source is empty without a backup.
// It holds only while no quorum responds: otherwise only a backup that a quorum confirmed has every write.
func (c *Cluster) Unstored(source string, lostFor time.Duration) string {
	var stored int64
	if m := c.member(source); m != nil {
		stored = m.RaftIndex
	}
	for i := range c.Pods {
		name := c.Pods[i].Name
		m := c.member(name)
		var index int64
		if m != nil {
			index = m.RaftIndex
		}
		switch {
		case name == source, name == c.RecoveryMember, c.HasPVC(name), c.Pods[i].Evidence.HasEnded():
		case m != nil && !m.Started && index == 0: // it has never had data
		case index > stored, index == 0 && lostFor < UnstoredGrace:
			return name
		}
	}
	return ""
}

// QuorumLostFor is for how long the last status says that the quorum is lost; 0 if it does not say so.
func QuorumLostFor(status *v1beta2.ClusterStatus, now time.Time) (lost bool, since time.Duration) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != v1beta2.ClusterConditionQuorumLost || c.Status != corev1.ConditionTrue {
			continue
		}
		at, err := time.Parse(time.RFC3339, c.LastTransitionTime)
		if err != nil {
			return true, 0
		}
		return true, now.Sub(at)
	}
	return false, 0
}
