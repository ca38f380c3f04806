// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// writingStatus is called before a status is written.
func (c *checks) writingStatus(by *manager, cluster *v1beta2.EtcdCluster) {
	if conditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) && !by.look.fromQuorum {
		c.violated("L2", "the status says Available and no quorum answered")
	}
	if v := cluster.Status.CurrentVersion; v != "" && !c.made[[2]string{string(cluster.UID), v}] {
		c.violated("L2", "the status says that version %s runs, for which no pod was ever made", v)
	}
}

// toldWithin is how long the status may say what is not so, while a controller looks at
// it. One that was stopped for a while has time to come back.
const toldWithin = 2 * time.Minute

// statements are what the status must not go on saying when it is not so any more.
var statements = []struct {
	lie  string
	true func(*checks, clusterObject, *lineage) bool
}{
	{"there is no quorum, and the status says Available", func(c *checks, cluster clusterObject, l *lineage) bool {
		return !conditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) || c.serves(l)
	}},
	{"a member does not serve, and the status calls it ready", func(c *checks, cluster clusterObject, l *lineage) bool {
		return !slices.ContainsFunc(cluster.Status.Members.Ready, func(name string) bool { return !c.follows(l, name) })
	}},
}

// follows is true if a member runs and knows a leader.
func (c *checks) follows(l *lineage, name string) bool {
	return slices.ContainsFunc(c.w.etcd.processes, func(p *process) bool {
		return p.run.name == name && p.dir.lineage == l && p.leader != 0
	})
}

// tick keeps the times that the excuses depend on, and looks at what the status says.
func (c *checks) tick() {
	cluster, found := lookup[clusterObject](c.w.store, kindCluster, clusterName)
	if found && cluster.Spec.Replicas != nil && *cluster.Spec.Replicas == 0 {
		c.sleepy = c.w.now
	}
	excused := !found || cluster.DeletionTimestamp != nil || c.recorded[string(cluster.UID)] == nil || cluster.Spec.Paused || c.sleeping() || !c.w.attended()
	for i := range statements {
		if excused || statements[i].true(c, cluster, c.recorded[string(cluster.UID)]) {
			c.truthful[i] = c.w.now
		}
		if c.w.now-c.truthful[i] > toldWithin {
			c.violated("L2", "since %v %s", c.truthful[i], statements[i].lie)
		}
	}
}

// attended is true if there is a controller, and every one sees what happens.
func (w *World) attended() bool {
	for _, c := range w.controllers {
		for k := range c.cache.kinds {
			if c.cache.kinds[k].frozenUntil > w.now {
				return false
			}
		}
	}
	return len(w.controllers) > 0
}
