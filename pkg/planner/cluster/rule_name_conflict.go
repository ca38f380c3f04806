// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ruleNameConflict waits while objects that this cluster does not own have its names, as right
// after a cluster was deleted and created again under the same name.
func ruleNameConflict(o *Observed) (Plan, bool) {
	plan, waits := findNameConflict(o)
	if !waits {
		return Plan{}, false
	}
	if pod := findPodOfAnother(o); pod != nil && !pod.Terminating && !pod.Finished {
		plan.Wait.Remedy = savePodsFirst(o.Cluster, pod) + plan.Wait.Remedy
	}
	return plan, true
}

func findNameConflict(o *Observed) (Plan, bool) {
	if o.Record.State == NotOwned {
		name := resources.RecordName(o.Cluster)
		return wait(recheckWaiting, ReasonNameConflict,
			"ConfigMap "+name+" exists and is not owned by this cluster",
			unprotectFirst(o, KindRecord, name)+"Delete that ConfigMap, or give the cluster another name."), true
	}
	if o.PeerService == NotOwned {
		return wait(recheckWaiting, ReasonNameConflict,
			"Service "+o.Cluster.Name+" exists and is not owned by this cluster",
			unprotectFirst(o, KindService, o.Cluster.Name)+"Delete that Service, or give the cluster another name."), true
	}
	if isBootstrapped(o) {
		return Plan{}, false
	}
	if o.ClientService == NotOwned {
		return waitForName(o, recheckWaiting), true
	}
	if pod := findPodOfAnother(o); pod != nil {
		return wait(recheckWaiting, ReasonOldPods,
			"pod "+pod.Name+" of another cluster of this name still exists",
			"If Kubernetes deletes the pods of that cluster, wait. Otherwise delete the pod."), true
	}
	return Plan{}, false
}

// findPodOfAnother returns a pod that has the labels of this cluster, and that another object or none owns.
func findPodOfAnother(o *Observed) *Pod {
	i := slices.IndexFunc(o.Pods, func(p Pod) bool { return !p.Owned })
	if i < 0 {
		return nil
	}
	return &o.Pods[i]
}

// savePodsFirst comes before a remedy that deletes what an earlier cluster has left: members without PVCs hold the only
// copy of its data, and its Services lead to them.
func savePodsFirst(cluster *v1beta2.EtcdCluster, pod *Pod) string {
	return fmt.Sprintf("The members of the earlier cluster, such as pod %s, may hold the only copy of its data. If they serve, save it first: "+
		"an EtcdBackup with spec.etcdEndpoints [http://%s:%d] (https with TLS). Then: ", pod.Name, resources.ClientServiceName(cluster), resources.ClientPort)
}

// waitForName waits while the name of the client Service is taken.
func waitForName(o *Observed, again time.Duration) Plan {
	name := resources.ClientServiceName(o.Cluster)
	return wait(again, ReasonNameConflict,
		"Service "+name+" exists and is not owned by this cluster, so this cluster has no client Service",
		unprotectFirst(o, KindService, name)+"Delete that Service or its owner, such as a cluster called "+name+", or give this cluster another name.")
}
