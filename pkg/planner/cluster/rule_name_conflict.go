// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ruleNameConflict waits while objects that this cluster does not own have its names, as right
// after a cluster was deleted and created again under the same name.
func ruleNameConflict(o *Observed) (Plan, bool) {
	if o.Record.State == NotOwned {
		name := resources.RecordName(o.Cluster)
		return wait(recheckWaiting, ReasonNameConflict,
			"ConfigMap "+name+" exists and is not owned by this cluster",
			"Delete that ConfigMap, or give the cluster another name."), true
	}
	if o.PeerService == NotOwned {
		return wait(recheckWaiting, ReasonNameConflict,
			"Service "+o.Cluster.Name+" exists and is not owned by this cluster",
			"Delete that Service, or give the cluster another name."), true
	}
	if isBootstrapped(o) {
		return Plan{}, false
	}
	if o.ClientService == NotOwned {
		return waitForName(o.Cluster, recheckWaiting), true
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; !p.Owned {
			return wait(recheckWaiting, ReasonOldPods,
				"pod "+p.Name+" of another cluster of this name still exists",
				"If that cluster was deleted, Kubernetes deletes the pod. Otherwise delete the pod."), true
		}
	}
	return Plan{}, false
}

// waitForName waits while the name of the client Service is taken.
func waitForName(cluster *v1beta2.EtcdCluster, again time.Duration) Plan {
	name := cluster.Name + "-client"
	return wait(again, ReasonNameConflict,
		"Service "+name+" exists and is not owned by this cluster, so this cluster has no client Service",
		"Delete that Service or its owner, such as a cluster called "+name+", or give this cluster another name.")
}
