// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// writingStatus is called before a status is written.
func (c *Checks) writingStatus(by *manager.Manager, cluster *v1beta2.EtcdCluster) {
	if kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) && !by.Observed.FromQuorum {
		c.w.Violated("L2", "the status says Available and no quorum responded")
	}
	if v := cluster.Status.CurrentVersion; v != "" && !c.made[[2]string{string(cluster.UID), v}] && !(c.w.Plan.Joins && v == c.w.Plan.Version) {
		c.w.Violated("L2", "the status says that version %s runs, for which no pod was ever made", v)
	}
}

// ToldWithin is how long the status may say what is not so, while a controller looks at
// it. One that was stopped for a while has time to come back.
const ToldWithin = 2 * time.Minute

// statements are what the status must not go on saying when it is not so any more.
var statements = []struct {
	lie  string
	true func(*Checks, kubernetes.EtcdCluster, *simetcd.Lineage) bool
}{
	{"there is no quorum, and the status says Available", func(c *Checks, cluster kubernetes.EtcdCluster, l *simetcd.Lineage) bool {
		return !kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) || c.w.Etcd.QuorumServes(l)
	}},
	{"etcd rejects writes, and the status says Available", func(_ *Checks, cluster kubernetes.EtcdCluster, l *simetcd.Lineage) bool {
		return !kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) || !l.RejectsWrites()
	}},
	{"a member does not serve, and the status calls it ready", func(c *Checks, cluster kubernetes.EtcdCluster, l *simetcd.Lineage) bool {
		return !slices.ContainsFunc(cluster.Status.Members.Ready, func(name string) bool { return !c.follows(l, name) })
	}},
	{"another program has added a member, and the status says Ready", func(_ *Checks, cluster kubernetes.EtcdCluster, l *simetcd.Lineage) bool {
		return !kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionReady, corev1.ConditionTrue) || !l.Members.HasUnmanaged()
	}},
	{"a member waits for its disk, and the status calls it healthy", func(c *Checks, cluster kubernetes.EtcdCluster, l *simetcd.Lineage) bool {
		// Without a quorum no read ends anywhere, which says nothing about a single member.
		return !c.w.Etcd.QuorumServes(l) || !slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool {
			return m.Healthy == corev1.ConditionTrue && m.Role != v1beta2.MemberRoleLearner && c.waitsForDisk(l, m.Name)
		})
	}},
}

// waitsForDisk is true if a member runs and waits for its disk. A member that all others are cut
// off from is left out: there no read ends, whatever its disk does.
func (c *Checks) waitsForDisk(l *simetcd.Lineage, name string) bool {
	return slices.ContainsFunc(c.w.Etcd.Processes, func(p *simetcd.Process) bool {
		return p.Run.Name() == name && p.Dir.Lineage == l && p.Stuck && c.isLinked(p)
	})
}

// isLinked is true if the network leads from a member to one that knows a leader.
func (c *Checks) isLinked(p *simetcd.Process) bool {
	return slices.ContainsFunc(c.w.Etcd.Processes, func(other *simetcd.Process) bool {
		return other != p && other.Dir.Lineage == p.Dir.Lineage && other.Leader != 0 && !other.Stuck &&
			other.Run.IsSevered() == p.Run.IsSevered() && !c.w.Etcd.Cut[simetcd.Pair(p.Run.Name(), other.Run.Name())]
	})
}

// follows is true if a member runs, knows a leader and does not wait for its disk.
func (c *Checks) follows(l *simetcd.Lineage, name string) bool {
	return slices.ContainsFunc(c.w.Etcd.Processes, func(p *simetcd.Process) bool {
		return p.Run.Name() == name && p.Dir.Lineage == l && p.Leader != 0 && !p.Stuck
	})
}

// Tick keeps the times that the excuses depend on, and checks the status.
func (c *Checks) Tick() {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if found && cluster.Spec.Replicas != nil && *cluster.Spec.Replicas == 0 {
		c.sleepy = c.w.Elapsed
	}
	excused := !found || cluster.DeletionTimestamp != nil || c.recorded[string(cluster.UID)] == nil || cluster.Spec.Paused || c.isSleeping() || !c.isAttended()
	for i := range statements {
		if excused || statements[i].true(c, cluster, c.recorded[string(cluster.UID)]) {
			c.truthful[i] = c.w.Elapsed
		}
		if c.w.Elapsed-c.truthful[i] > ToldWithin {
			c.w.Violated("L2", "since %v %s", c.truthful[i], statements[i].lie)
		}
	}
}

// isAttended is true if there is a controller, and every one runs and sees what happens.
func (c *Checks) isAttended() bool {
	for _, c := range c.w.Controllers {
		if c.Paused {
			return false
		}
		for k := range c.Cache.Kinds {
			if c.Cache.Kinds[k].FrozenUntil > c.W.Elapsed {
				return false
			}
		}
	}
	return len(c.w.Controllers) > 0
}
