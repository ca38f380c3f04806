// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"

// size is the desired number of voters.
func (o *Observed) size() int {
	if o.Cluster.Spec.Replicas == nil {
		return 0
	}
	return int(*o.Cluster.Spec.Replicas)
}

// persistent is true if each member keeps its data on a PVC.
func (o *Observed) persistent() bool {
	return o.Cluster.Spec.Pod != nil && o.Cluster.Spec.Pod.PersistentVolumeClaimSpec != nil
}

// bootstrapped is true if this cluster has ever served. More than one place is
// asked, so that losing one of them never leads to a second bootstrap member.
func (o *Observed) bootstrapped() bool {
	if o.Record.ClusterID != "" && o.Record.State != NotOwned {
		return true
	}
	if o.ClientService == Current || o.ClientService == Drifted {
		return true // clients are published to only after the record was written
	}
	return o.statusSaysServed() // even if a bootstrap member has responded: it was not published to clients
}

// statusSaysServed is true once the status has reported that the cluster runs. That is the
// one proof that lasts for as long as the cluster object. So the member is published to
// clients only after that status was written.
func (o *Observed) statusSaysServed() bool {
	switch o.Cluster.Status.Phase {
	case v1beta2.ClusterPhaseRunning, v1beta2.ClusterPhaseFailed, v1beta2.ClusterPhaseHibernated:
		return true
	case v1beta2.ClusterPhaseNone, v1beta2.ClusterPhaseCreating:
		return false
	default:
		return true
	}
}
