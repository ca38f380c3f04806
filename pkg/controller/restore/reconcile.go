// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/restore"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Config is what a Reconciler works with. Every field is required but Platform.
type Config struct {
	Cache    Cache
	Objects  Objects
	Gate     Gate
	Recorder Recorder
	Progress Progress
	Clock    clock.PassiveClock
	// AgentImage is the image of the Jobs.
	AgentImage string
	// Platform is what the installation says about every pod.
	Platform resources.Platform
	// Responsible says whether an EtcdRestore, or the cluster that it names, is this
	// controller's to look after.
	Responsible func(metav1.Object) bool
}

// Reconciler moves one EtcdRestore at a time a step on.
type Reconciler struct {
	Config
	held reconcile.Held
}

// NewReconciler returns a Reconciler, or an error that names what is missing.
func NewReconciler(c Config) (*Reconciler, error) {
	if c.Cache == nil || c.Objects == nil || c.Gate == nil || c.Recorder == nil || c.Progress == nil || c.Clock == nil ||
		c.AgentImage == "" || c.Responsible == nil {
		return nil, errors.New("restore reconciler: every field of the configuration is required")
	}
	return &Reconciler{Config: c}, nil
}

// Reconcile observes the EtcdRestore called key, does what the planner decides and writes
// the status if it changed. It returns when to be called again if nothing happens before.
// An error is something that went wrong and is tried again with back-off; waiting is not
// an error.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	restore, err := r.Cache.Restore(key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		r.Gate.Forget(key)
		r.held.Forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the restore from the cache: %w", err)
	}
	ready, err := r.held.IsReady(r.Gate, key, r.Clock.Now(), func() (metav1.Object, error) { return r.Objects.GetRestore(ctx, key.Namespace, key.Name) })
	if err != nil {
		return 0, err
	}
	if !ready {
		return reconcile.GateRetry, nil
	}
	s, err := r.observe(ctx, restore)
	if err != nil {
		return 0, err
	}
	if !r.isResponsible(s) {
		return reconcile.ScopeRetry, nil
	}
	plan := planner.Decide(s.Observed)
	if plan.Action == planner.ActionVerify || plan.Action == planner.ActionRequestRecovery {
		if err := r.observeLive(ctx, s); err != nil {
			return 0, err
		}
		plan = planner.Decide(s.Observed)
	}
	klog.FromContext(ctx).V(4).Info("Decided", "action", plan.Action, "phase", plan.Phase, "wait", plan.Wait)
	return r.act(ctx, key, s, plan)
}

// isResponsible goes by the cluster, so that a restore has the same controller; by the
// restore itself while there is none.
func (r *Reconciler) isResponsible(s *seen) bool {
	if s.Cluster != nil {
		return r.Responsible(s.Cluster)
	}
	return r.Responsible(s.Restore)
}

// act carries out the decision and writes the status. The actions come first: after a crash
// the controller relies on the status, which must not report what has not happened.
func (r *Reconciler) act(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) (time.Duration, error) {
	if plan.Rejected != nil || plan.Record != nil {
		// This is what what follows is decided on.
		return plan.RequeueAfter, r.writeStatus(ctx, key, s, plan)
	}
	err := r.do(ctx, key, s, plan)
	if errors.Is(err, reconcile.ErrStale) || apierrors.IsConflict(err) {
		klog.FromContext(ctx).V(2).Info("Skipped an action: its observation is stale", "action", plan.Action, "err", err)
		return reconcile.GateRetry, nil
	}
	if errors.Is(err, reconcile.ErrRejected) {
		klog.FromContext(ctx).Info("Kubernetes rejected an object; trying again", "action", plan.Action, "err", err)
		plan = plan.Postponed(planner.Wait{Reason: planner.ReasonRejected, Message: job.Shorten(err.Error())})
		err = nil
	}
	if err != nil {
		return 0, err
	}
	var failed error
	for _, name := range plan.Delete {
		failed = errors.Join(failed, r.jobs().Delete(ctx, s.jobs, name))
	}
	if plan.Action == planner.ActionAddFinalizer || plan.Action == planner.ActionRemoveFinalizer {
		return reconcile.GateRetry, failed // what was observed is not what is stored any more
	}
	failed = errors.Join(failed, r.writeStatus(ctx, key, s, plan))
	return plan.RequeueAfter, failed
}

func (r *Reconciler) do(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) error {
	switch plan.Action {
	case planner.ActionVerify:
		return r.verify(ctx, key, s, plan)
	case planner.ActionAddFinalizer, planner.ActionRemoveFinalizer:
		return r.setFinalizer(ctx, key, s, plan.Action == planner.ActionAddFinalizer)
	case planner.ActionCreateCluster:
		return r.createCluster(ctx, key, s, plan)
	case planner.ActionBackUpFirst:
		return r.copyData(ctx, key, s, plan)
	case planner.ActionRequestRecovery:
		return r.ask(ctx, key, s, plan)
	case planner.ActionCancelRecovery:
		return r.cancel(ctx, key, s)
	case planner.ActionDeleteCluster:
		return r.discard(ctx, key, s)
	default:
		return nil
	}
}

// writeStatus writes the status if it changed.
func (r *Reconciler) writeStatus(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) error {
	write := reconcile.StatusWrite[v1beta2.RestoreStatus]{Kind: reconcile.RestoreStatus, Gate: r.Gate, Key: key, Object: s.Restore, Current: s.Restore.Status, Now: s.Now}
	written, err := write.Do(ctx,
		func() v1beta2.RestoreStatus { return planner.Status(s.Observed, plan) },
		func(status v1beta2.RestoreStatus) (metav1.Object, error) {
			update := s.Restore.DeepCopy()
			update.Status = status
			return r.Objects.UpdateRestoreStatus(ctx, update)
		})
	if written {
		r.announce(s, plan)
	}
	return err
}
