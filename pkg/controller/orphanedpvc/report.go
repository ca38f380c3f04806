// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package orphanedpvc

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Reason of the event.
const (
	// EventClusterMissing: the EtcdCluster of a PVC does not exist. The event is on the PVC.
	EventClusterMissing = "EtcdClusterMissing"
)

// retry is when to look again while the API does not tell whether a cluster exists.
const retry = 30 * time.Second

// Cache lists the PVCs that carry the labels of the cluster called name. It may lag behind.
type Cache interface {
	PVCs(namespace, name string) ([]*corev1.PersistentVolumeClaim, error)
}

// Clusters reads EtcdClusters from the live API.
type Clusters interface {
	GetCluster(ctx context.Context, namespace, name string) (*v1beta2.EtcdCluster, error)
}

// Reporter records one event for each orphaned PVC. It is safe for concurrent use.
type Reporter struct {
	Cache    Cache
	Clusters Clusters
	Recorder reconcile.Recorder

	mu sync.Mutex
	// reported are the UIDs of the PVCs that were reported last, by cluster.
	reported map[types.NamespacedName]string
}

// Report records an event for each orphaned PVC of the name key, unless the same PVCs were
// reported before. Cluster is the EtcdCluster that the cache shows; nil if it shows none.
// Report returns when to call it again; 0 if there is no need to.
func (r *Reporter) Report(ctx context.Context, key types.NamespacedName, cluster *v1beta2.EtcdCluster) time.Duration {
	listed, err := r.Cache.PVCs(key.Namespace, key.Name)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot list PVCs from the cache")
		return retry
	}
	orphaned := slices.DeleteFunc(slices.Clone(listed), func(p *corev1.PersistentVolumeClaim) bool { return !isOrphaned(p, cluster) })
	uids := make([]string, 0, len(orphaned))
	for _, p := range orphaned {
		uids = append(uids, string(p.UID))
	}
	slices.Sort(uids)
	found := strings.Join(uids, " ")
	if r.isReported(key, found) {
		return 0
	}
	if len(orphaned) > 0 {
		// The cache may lag behind. Only the live API proves that the cluster does not exist.
		live, err := r.Clusters.GetCluster(ctx, key.Namespace, key.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return retry
		}
		if err == nil && slices.ContainsFunc(orphaned, func(p *corev1.PersistentVolumeClaim) bool { return !isOrphaned(p, live) }) {
			return retry
		}
	}
	for _, p := range orphaned {
		uid := p.Annotations[resources.AnnotationClusterUID]
		klog.FromContext(ctx).Info("The EtcdCluster of a PVC does not exist; the PVC is kept", "PVC", klog.KObj(p), "clusterUID", uid)
		r.Recorder.Eventf(p, corev1.EventTypeWarning, EventClusterMissing,
			"EtcdCluster %s with UID %s does not exist. This PVC is kept, and no other cluster uses it without a request. "+
				"Restore the data of the API server, or create the EtcdCluster with spec.bootstrap.fromVolumes, or delete the PVC if its data is not needed.", key.Name, uid)
	}
	r.setReported(key, found)
	return 0
}

// isReported is true if the PVCs with these UIDs are those that were reported last.
func (r *Reporter) isReported(key types.NamespacedName, uids string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reported[key] == uids
}

func (r *Reporter) setReported(key types.NamespacedName, uids string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported == nil {
		r.reported = map[types.NamespacedName]string{}
	}
	if uids == "" {
		delete(r.reported, key)
	} else {
		r.reported[key] = uids
	}
}

// isOrphaned is true for a PVC of a cluster other than the one that exists, unless the PVC is
// being deleted or a retention policy keeps it.
func isOrphaned(p *corev1.PersistentVolumeClaim, cluster *v1beta2.EtcdCluster) bool {
	uid := p.Annotations[resources.AnnotationClusterUID]
	return uid != "" && p.DeletionTimestamp == nil && p.Annotations[resources.AnnotationRetained] == "" &&
		(cluster == nil || uid != string(cluster.UID))
}
