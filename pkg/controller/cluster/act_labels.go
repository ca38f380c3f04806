// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The caches hold only objects with the labels of members. One that has lost them is
// there and is not seen: making it fails for ever, and a member that runs looks like
// one that is lost. The functions here are called where that comes to light, and give
// the labels back.

// errNotOurs means that an object of a name that the cluster needs belongs to
// somebody else.
var errNotOurs = errors.New("it belongs to somebody else")

func (r *Reconciler) showPod(ctx context.Context, key types.NamespacedName, s *seen, live *corev1.Pod) error {
	if !metav1.IsControlledBy(live, s.Cluster) {
		return fmt.Errorf("pod %s exists: %w", live.Name, errNotOurs)
	}
	pod := live.DeepCopy()
	if !putLabels(&pod.ObjectMeta, s.Cluster.Name) {
		r.Gate.Note(key, live)
		return nil
	}
	return r.writePod(ctx, key, pod)
}

func (r *Reconciler) showClaim(ctx context.Context, key types.NamespacedName, s *seen, live *corev1.PersistentVolumeClaim) error {
	if !resources.Owns(s.Cluster, live) {
		return fmt.Errorf("claim %s exists: %w", live.Name, errNotOurs)
	}
	claim := live.DeepCopy()
	if !putLabels(&claim.ObjectMeta, s.Cluster.Name) {
		r.Gate.Note(key, live)
		return nil
	}
	return r.writeClaim(ctx, key, claim)
}

// showService repairs a service that the cache does not show.
func (r *Reconciler) showService(ctx context.Context, key types.NamespacedName, s *seen, name string, repaired drift) error {
	live, err := r.Objects.GetService(ctx, s.Cluster.Namespace, name)
	if err != nil {
		return fmt.Errorf("read service %s: %w", name, err)
	}
	if !resources.Owns(s.Cluster, live) {
		return fmt.Errorf("service %s exists: %w", name, errNotOurs)
	}
	return r.repairService(ctx, key, s, live, repaired)
}

// putLabels gives an object of a member its labels, and says whether one was missing.
func putLabels(m *metav1.ObjectMeta, cluster string) bool {
	want := resources.Labels(cluster)
	want[resources.LabelMember] = m.Name
	changed := false
	for k, v := range want {
		if m.Labels[k] != v {
			metav1.SetMetaDataLabel(m, k, v)
			changed = true
		}
	}
	return changed
}
