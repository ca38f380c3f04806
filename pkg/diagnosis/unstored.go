// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// UnstoredGrace is how long after the loss of the quorum a restore waits for a member that does not respond, and whose
// writes end with its pod. That pod may have ended permanently.
const UnstoredGrace = 15 * time.Minute

// Newer says which member responds and has read more of the log than up to index, where a backup ends that no quorum
// confirmed; empty if there is none. Another backup has what that member has. Learners do not count: no backup is of one.
func (c *Cluster) Newer(index int64) string {
	for _, m := range c.RankSources() {
		if m.Name != c.RecoveryMember && !m.isLearner() && m.RaftIndex > index {
			return fmt.Sprintf("member %s has the log up to index %d and that backup up to %d, so that it may have newer writes", m.Name, m.RaftIndex, index)
		}
	}
	return ""
}

// Unstored says which member does not respond, and has a pod and no PVC: writes which only it has end with its pod. It is
// empty if there is none, or if the quorum was lost UnstoredGrace ago.
func (c *Cluster) Unstored(lostFor time.Duration) string {
	if lostFor >= UnstoredGrace {
		return ""
	}
	for i := range c.Pods {
		p := &c.Pods[i]
		m := c.member(p.Name)
		responds, empty := m != nil && m.RaftIndex > 0, m != nil && !m.Started // one that never started has no data
		if p.Name != c.RecoveryMember && !responds && !empty && !c.HasPVC(p.Name) && !p.Evidence.HasEnded() {
			return fmt.Sprintf("member %s does not respond and has no PVC, so that its writes end with its pod; it has %v from the loss of the quorum", p.Name, UnstoredGrace)
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
