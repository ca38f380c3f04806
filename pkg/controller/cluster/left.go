// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// retryLeft is when to ask again whether a cluster exists, while its API does not respond.
const retryLeft = 30 * time.Second

// leftovers remembers which PVCs without an EtcdCluster were reported.
type leftovers struct {
	mu       sync.Mutex
	reported map[types.NamespacedName]string
}

// isNews is true if the PVCs of key, by their UIDs, are not those that were reported last.
func (l *leftovers) isNews(key types.NamespacedName, uids string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reported[key] != uids
}

// note remembers what was reported; nothing if uids is empty.
func (l *leftovers) note(key types.NamespacedName, uids string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reported == nil {
		l.reported = map[types.NamespacedName]string{}
	}
	if uids == "" {
		delete(l.reported, key)
	} else {
		l.reported[key] = uids
	}
}

// reportLeft tells a person of PVCs that belong to an EtcdCluster of this name which does
// not exist, because the API lost it or was brought back from an earlier time. They stay,
// and no other cluster gets them. Cluster is the one that the cache shows; nil if none. It
// returns when to try again; 0 if there is no need to.
func (r *Reconciler) reportLeft(ctx context.Context, key types.NamespacedName, cluster *v1beta2.EtcdCluster) time.Duration {
	claims, err := r.Cache.Claims(key.Namespace, key.Name)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot list PVCs from the cache")
		return retryLeft
	}
	claims = slices.DeleteFunc(slices.Clone(claims), func(p *corev1.PersistentVolumeClaim) bool { return !isLeft(p, cluster) })
	uids := make([]string, 0, len(claims))
	for _, p := range claims {
		uids = append(uids, string(p.UID))
	}
	slices.Sort(uids)
	found := strings.Join(uids, " ")
	if !r.left.isNews(key, found) {
		return 0
	}
	if len(claims) > 0 {
		// The cache may be behind; nobody is to be alarmed by that.
		live, err := r.Objects.GetCluster(ctx, key.Namespace, key.Name)
		if err != nil && !notFound(err) {
			return retryLeft
		}
		if err == nil && slices.ContainsFunc(claims, func(p *corev1.PersistentVolumeClaim) bool { return !isLeft(p, live) }) {
			return retryLeft
		}
	}
	for _, p := range claims {
		uid := p.Annotations[resources.AnnotationClusterUID]
		klog.FromContext(ctx).Info("A PVC is left of an EtcdCluster that does not exist, and is kept", "PVC", klog.KObj(p), "clusterUID", uid)
		r.Recorder.Eventf(p, corev1.EventTypeWarning, EventVolumesLeft,
			"EtcdCluster %s with UID %s does not exist. This PVC is kept and no other cluster uses it. Bring the API's own data back, or delete the PVC if nobody needs its data", key.Name, uid)
	}
	r.left.note(key, found)
	return 0
}

// isLeft is true for a PVC of a cluster other than the one that exists, unless it is kept
// as its owner asked.
func isLeft(p *corev1.PersistentVolumeClaim, cluster *v1beta2.EtcdCluster) bool {
	uid := p.Annotations[resources.AnnotationClusterUID]
	return uid != "" && p.DeletionTimestamp == nil && p.Annotations[resources.AnnotationRetained] == "" &&
		(cluster == nil || uid != string(cluster.UID))
}
