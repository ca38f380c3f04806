// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// bugsOfPartitions are mistakes about members on nodes that are cut off.
func bugsOfPartitions() []bug {
	return []bug{
		{name: "takes a deletion that was requested for the end of a member", rules: "S1 S4", wrap: hurrying(takeDeletedForEnded), story: severMajority},
		{name: "lets a new lineage in beside members that may run", rules: "S4", wrap: hurrying(nil), story: restoreBesideACut},
	}
}

// hurrying is a controller that takes a pod for ended as soon as its deletion was requested.
func hurrying(change func(*manager, cluster.Config, planner.Observed, decider) planner.Plan) func(*manager, cluster.Config) cluster.Config {
	return func(m *manager, c cluster.Config) cluster.Config {
		c.Objects = hasty{c.Objects}
		if change == nil {
			return c
		}
		return deciding(change)(m, c)
	}
}

type hasty struct{ cluster.Objects }

// GetPod implements cluster.Objects.
func (h hasty) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := h.Objects.GetPod(ctx, namespace, name)
	if err == nil && pod.DeletionTimestamp != nil {
		pod = pod.DeepCopy()
		pod.Status.Phase = corev1.PodFailed
	}
	return pod, err
}

func takeDeletedForEnded(_ *manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Pods = slices.Clone(o.Pods)
	for i := range o.Pods {
		o.Pods[i].Finished = o.Pods[i].Finished || o.Pods[i].Terminating
	}
	return decide(provenForLong(o))
}

// provenForLong has the status say that a quorum was lost for good an hour ago. The real one
// is made of what was really observed, and so proves nothing.
func provenForLong(o planner.Observed) planner.Observed {
	since := metav1.NewTime(o.Now.Add(-time.Hour))
	o.Cluster = o.Cluster.DeepCopy()
	o.Cluster.Status.PermanentQuorumLossSince = &since
	return o
}

// severMajority cuts most members off for longer than Kubernetes leaves their pods alone, in
// a cluster that may go on by itself.
func severMajority(s *Schedule) {
	s.Size, s.Volumes, s.Deadly, s.Automatic, s.Recovers, s.Version = 3, false, true, true, false, versionLines[0][0]
	s.Events = []Event{
		{At: time.Minute, Kind: EventSever, A: int(s.Seed), B: 16, For: evictAfter + 3*time.Minute},
		{At: time.Minute + evictAfter + 3*time.Minute, Kind: EventResume}, // all faults end with the last event
	}
}

// restoreBesideACut asks for a restore in place while most members are cut off.
func restoreBesideACut(s *Schedule) {
	s.Size, s.Volumes, s.Deadly, s.Automatic, s.Recovers, s.Version = 3, false, true, false, false, versionLines[0][0]
	s.Events = []Event{
		{At: 50 * time.Second, Kind: EventBackup},
		{At: time.Minute, Kind: EventSever, A: int(s.Seed), B: 16, For: 4 * time.Minute},
		{At: 90 * time.Second, Kind: EventRestore},
		{At: 5 * time.Minute, Kind: EventResume},
	}
}
