// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// markObject has exactly the object that was observed say whose it is, and whether the
// cluster is protected. The spec is confirmed first: a cache that is behind must not
// protect a cluster again whose owner has just lifted the protection.
func (r *Reconciler) markObject(ctx context.Context, key types.NamespacedName, s *seen, a planner.MarkObject) error {
	if err := r.confirmSpec(ctx, s); err != nil {
		return err
	}
	switch namespace := s.Cluster.Namespace; a.Kind {
	case planner.KindPod:
		return remark(ctx, r, key, s, a.Object, namespace, r.Objects.GetPod, r.Objects.UpdatePod)
	case planner.KindPVC:
		return remark(ctx, r, key, s, a.Object, namespace, r.Objects.GetClaim, r.Objects.UpdateClaim)
	case planner.KindService:
		return remark(ctx, r, key, s, a.Object, namespace, r.Objects.GetService, r.Objects.UpdateService)
	case planner.KindBudget:
		return remark(ctx, r, key, s, a.Object, namespace, r.Objects.GetPodDisruptionBudget, r.Objects.UpdatePodDisruptionBudget)
	case planner.KindSecret:
		// No cache shows Secrets, so the gate could not wait for this one.
		r.secrets.doubt(key)
		return remark(ctx, nil, key, s, a.Object, namespace, r.Objects.GetSecret, r.Objects.UpdateSecret)
	default:
		return fmt.Errorf("unknown kind %q", a.Kind)
	}
}

// marked is an object that can be marked.
type marked interface {
	metav1.Object
	runtime.Object
}

// remark marks the live object, if it is the one that was observed. The gate of noted, if
// that is not nil, waits until the cache shows it.
func remark[T marked](
	ctx context.Context, noted *Reconciler, key types.NamespacedName, s *seen, object planner.Object, namespace string,
	get func(context.Context, string, string) (T, error), update func(context.Context, T) (T, error),
) error {
	live, err := get(ctx, namespace, object.Name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", object.Kind, object.Name, err)
	}
	if string(live.GetUID()) != object.UID || !resources.Owns(s.Cluster, live) {
		return fmt.Errorf("%s %s was replaced since it was observed: %w", object.Kind, object.Name, ErrStale)
	}
	changed, _ := live.DeepCopyObject().(T)
	if !mark(s, changed) {
		return nil
	}
	updated, err := update(ctx, changed)
	if err != nil {
		return conflictIsStale(err)
	}
	if noted != nil {
		noted.Gate.Note(key, updated)
	}
	return nil
}
