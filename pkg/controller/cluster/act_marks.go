// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// markObject has exactly the object that was observed say whose it is, and whether the
// cluster is protected. The spec is confirmed first: a cache that is behind must not
// protect a cluster again whose owner has just lifted the protection.
func markObject(ctx context.Context, r *run, a planner.LabelObject) error {
	if err := requireSameSpec(ctx, r); err != nil {
		return err
	}
	switch a.Kind {
	case planner.KindPod:
		return remark(ctx, r, a.Object, r.Objects.GetPod, updatePod)
	case planner.KindPVC:
		return remark(ctx, r, a.Object, r.Objects.GetPVC, writing(r.Objects.UpdatePVC, true))
	case planner.KindService:
		return remark(ctx, r, a.Object, r.Objects.GetService, writing(r.Objects.UpdateService, true))
	case planner.KindRecord:
		return remark(ctx, r, a.Object, r.Objects.GetConfigMap, writing(r.Objects.UpdateConfigMap, true))
	case planner.KindBudget:
		return remark(ctx, r, a.Object, r.Objects.GetPodDisruptionBudget, writing(r.Objects.UpdatePodDisruptionBudget, true))
	case planner.KindSecret:
		// No cache shows Secrets, so the gate could not wait for the Secret.
		r.secrets.invalidate(r.key)
		return remark(ctx, r, a.Object, r.Objects.GetSecret, writing(r.Objects.UpdateSecret, false))
	default:
		return fmt.Errorf("unknown kind %q", a.Kind)
	}
}

// marked is an object that can be marked.
type marked interface {
	metav1.Object
	runtime.Object
}

// writing returns how an object is written. If cached is true, the gate waits until the cache shows the write.
func writing[T marked](update func(context.Context, T) (T, error), cached bool) func(context.Context, *run, T, T) error {
	return func(ctx context.Context, r *run, _, changed T) error {
		updated, err := update(ctx, changed)
		if err != nil {
			return reconcile.StaleOnConflict(err)
		}
		if cached {
			r.Gate.Note(r.key, updated)
		}
		return nil
	}
}

// remark marks the live object, if it is the one that was observed.
func remark[T marked](
	ctx context.Context, r *run, object planner.Object,
	get func(context.Context, string, string) (T, error), write func(ctx context.Context, r *run, live, changed T) error,
) error {
	live, err := get(ctx, r.seen.Cluster.Namespace, object.Name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", object.Kind, object.Name, err)
	}
	if string(live.GetUID()) != object.UID || !isOwned(r.seen, live) {
		return fmt.Errorf("%s %s was replaced since it was observed: %w", object.Kind, object.Name, reconcile.ErrStale)
	}
	changed, _ := live.DeepCopyObject().(T)
	if !mark(r.seen, changed) {
		return nil
	}
	return write(ctx, r, live, changed)
}
