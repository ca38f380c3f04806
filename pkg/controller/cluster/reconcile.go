// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

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
	"github.com/etcd-operator/etcd-operator/pkg/controller/orphanedpvc"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// Config is what a Reconciler needs; every field is required but Keep, Launchers, TakeOvers and Platform.
type Config struct {
	Cache       Cache
	Objects     Objects
	CertManager CertManager
	Etcd        Etcd
	// Keep, if not nil, gets the members of a cluster after each observation, and none when
	// the cluster was deleted, so that connections to other members end.
	Keep     func(key types.NamespacedName, members ...etcd.Target)
	Gate     Gate
	Recorder Recorder
	Waker    Waker
	// Launchers, if not nil, learn from the controller that their member was added.
	Launchers Launchers
	// TakeOvers, if not nil, has the places for clusters that take over an etcd.
	TakeOvers *share.Limiter
	// Background runs what takes long.
	Background Background
	Clock      clock.PassiveClock
	// Decide is the planner.
	Decide func(planner.Observed) planner.Plan
	// Suffix returns ten random characters for a member name.
	Suffix func() string
	// Responsible says whether a cluster is this controller's to look after.
	Responsible func(*v1beta2.EtcdCluster) bool
	// AgentImage holds the agent that fills the recovery member.
	AgentImage string
	// Platform is what the installation says about every pod.
	Platform resources.Platform
}

// Reconciler moves one cluster at a time a step towards its spec.
type Reconciler struct {
	Config
	secrets  secretCache
	held     reconcile.Held
	creation reconcile.CreationBackoff
	disarms  disarmMemory
	stale    staleActions
	reports  nodeReporting
	existing takeOvers
	orphaned orphanedpvc.Reporter
	// rewritten are the Certificates that a policy changes back.
	rewritten rewrittenCertificates
}

// NewReconciler returns a Reconciler, or an error that names what is missing.
func NewReconciler(c Config) (*Reconciler, error) {
	if c.Cache == nil || c.Objects == nil || c.CertManager == nil || c.Etcd == nil || c.Gate == nil || c.Recorder == nil ||
		c.Waker == nil || c.Background == nil || c.Clock == nil || c.Decide == nil || c.Suffix == nil || c.Responsible == nil || c.AgentImage == "" {
		return nil, errors.New("cluster reconciler: every field of the configuration is required")
	}
	return newReconciler(c), nil
}

// newReconciler returns a Reconciler with a configuration that was checked.
func newReconciler(c Config) *Reconciler {
	return &Reconciler{
		Config:   c,
		existing: takeOvers{places: c.TakeOvers},
		orphaned: orphanedpvc.Reporter{Cache: c.Cache, Clusters: c.Objects, Recorder: c.Recorder},
	}
}

// Reconcile observes the cluster called key, does what the planner decides and
// writes the status if it changed. It returns when to reconcile again if nothing happens
// before; 0: not at all. An error is something that went wrong and is tried again with
// back-off; waiting is not an error.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	cluster, err := r.Cache.Cluster(key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		r.Gate.Forget(key)
		r.held.Forget(key)
		r.secrets.forget(key)
		r.creation.Forget(key)
		r.disarms.forget(key)
		r.stale.forget(key)
		r.rewritten.forget(key)
		r.reports.forget(key)
		r.existing.forget(key)
		r.Background.Forget(key)
		r.keep(key)
		return r.orphaned.Report(ctx, key, nil), nil
	}
	if err != nil {
		return 0, fmt.Errorf("read cluster from the cache: %w", err)
	}
	if !r.Responsible(cluster) {
		r.existing.forget(key)
		r.keep(key)
		return reconcile.ScopeRetry, nil
	}
	ready, err := r.held.IsReady(r.Gate, key, r.Clock.Now(), func() (metav1.Object, error) { return r.Objects.GetCluster(ctx, key.Namespace, key.Name) })
	if err != nil {
		return 0, err
	}
	if !ready {
		return reconcile.GateRetry, nil
	}
	r.orphaned.Report(ctx, key, cluster)
	return r.step(ctx, key, cluster)
}

func (r *Reconciler) keep(key types.NamespacedName, members ...etcd.Target) {
	if r.Keep != nil {
		r.Keep(key, members...)
	}
}

// step observes, decides, acts and writes the status.
func (r *Reconciler) step(ctx context.Context, key types.NamespacedName, cluster *v1beta2.EtcdCluster) (time.Duration, error) {
	// The age of an observation is counted by the clock that follows the kube-apiserver, and that clock may be set back
	// meanwhile. This deadline is monotonic.
	acting, cancel := context.WithTimeout(ctx, observationLife)
	defer cancel()
	current := &run{Reconciler: r, key: key}
	if err := observe(ctx, current, cluster); err != nil {
		return 0, err
	}
	plan := r.Decide(current.seen.Observed)
	klog.FromContext(ctx).V(4).Info("Decided", "rule", plan.Rule, "actions", len(plan.Actions), "wait", plan.Wait)

	outcome, actErr := act(acting, current, plan)
	plan = outcome.revised(plan)
	statusErr := writeStatus(ctx, current, plan)
	return plan.RequeueAfter, errors.Join(actErr, statusErr)
}
