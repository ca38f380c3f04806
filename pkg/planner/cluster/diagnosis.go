// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// diagnoseQuorumLoss diagnoses a quorum that could not be read.
func diagnoseQuorumLoss(o *Observed) diagnosis.Loss { return diagnosisInput(o).QuorumLoss() }

// diagnosisInput returns what package diagnosis needs to know of a cluster whose member list could
// not be read.
func diagnosisInput(o *Observed) *diagnosis.Cluster {
	c := &diagnosis.Cluster{
		HasLearners: upgradePathOf(o).knowsLearners(), UnreadFor: unreadFor(o.Cluster.Status.Conditions, o.Now), ReadError: o.Etcd.Err, Denied: o.Etcd.Denied,
		Options: diagnosis.Options{Cluster: o.Cluster.Name, Automatic: recoversAutomatically(o.Cluster), Grace: recovery.Grace},
	}
	if b := o.Cluster.Status.LastBackup; resources.Restorable(b) == nil {
		c.Options.LastBackup = b.Name
	}
	if r := recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery); r.IsInProgress() {
		c.RecoveryMember = r.RecoveryMember
	}
	for i := range o.Etcd.Members {
		c.Members = append(c.Members, diagnosisMember(upgradePathOf(o), &o.Etcd.Members[i]))
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned {
			c.Pods = append(c.Pods, diagnosis.Pod{
				Name: p.Name, Node: p.Node, Evidence: evidenceOf(p), Running: p.Running, Ready: p.Ready,
				LabelledVoter: p.Role == PodVoter || p.Role == PodDraining, Waiting: p.Waiting,
			})
		}
	}
	for i := range o.PVCs {
		if pvc := &o.PVCs[i]; pvc.Owned {
			c.PVCs = append(c.PVCs, diagnosis.PVC{Name: pvc.Name, Terminating: pvc.Terminating})
		}
	}
	return c
}

func diagnosisMember(u upgradePath, m *Member) diagnosis.Member {
	facts := diagnosis.Member{
		Name: m.Name, Started: m.Started, Learner: m.Learner, Response: responseOf(m),
		RaftIndex: signed(m.RaftIndex), DBSize: m.DBSize, Limitation: resources.RevisionGoesBack(u.recoveryVersion(m)),
	}
	if m.View != nil {
		facts.View = &diagnosis.View{Learner: m.View.Learner}
		for i := range m.View.Members {
			listed := &m.View.Members[i]
			facts.View.Members = append(facts.View.Members, diagnosis.ListedMember{Name: listed.Name, Learner: listed.Learner, Unmanaged: listed.Unmanaged})
		}
	}
	return facts
}

// signed is an index as the API holds it.
func signed(index uint64) int64 { return int64(min(index, math.MaxInt64)) }
