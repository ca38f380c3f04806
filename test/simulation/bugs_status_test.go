// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
)

// bugsOfStatus are mistakes in what the status reports, and in when the controller reads the
// state.
func bugsOfStatus() []bug {
	return []bug{
		{name: "reports Available because it once was", rules: "L2", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return alwaysAvailable{c.Objects} })},
		{name: "leaves the status as it was when the quorum is lost", rules: "L2", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return unreportedLoss{c.Objects} })},
		{name: "reports Available as soon as pods exist", rules: "L2", wrap: writing(func(m *manager.Manager, c cluster.Config) cluster.Objects { return countsPods{c.Objects, c.Cache} })},
		{name: "abandons a cluster whose start was interrupted", rules: "L1", wrap: giveUp},
		{name: "reconciles only when Kubernetes reports a change", rules: "L1 L2 L3", wrap: deaf},
		{name: "restores a backup a second time for an older object", rules: "S6", wrap: deciding(forgetRecoveries), story: twoRestores},
		{name: "loses with the record which recoveries have begun", rules: "S6", wrap: forgetWitnesses, story: withoutRecord(twoRestores)},
		{name: "trusts an old status of a recovery more than the record", rules: "S1 S2 S6", wrap: deciding(believeStatus), story: oldAPIStories["from the midst of a restore"]},
		{name: "waits for its own write that the API has lost", rules: "L1 L2 L3", wrap: patient, story: oldAPIStories["from before the first status"]},
		{name: "does not report what it waits for", rules: "L1", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return unblocked{c.Objects} })},
	}
}

// said returns the status with a condition set.
func said(c *v1beta2.EtcdCluster, t v1beta2.ClusterConditionType, status corev1.ConditionStatus) *v1beta2.EtcdCluster {
	c = c.DeepCopy()
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == t {
			c.Status.Conditions[i].Status = status
		}
	}
	return c
}

type alwaysAvailable struct{ cluster.Objects }

// UpdateClusterStatus implements cluster.Objects.
func (o alwaysAvailable) UpdateClusterStatus(ctx context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	if c.Status.Phase == v1beta2.ClusterPhaseRunning || c.Status.Phase == v1beta2.ClusterPhaseFailed {
		c = said(c, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	}
	return o.Objects.UpdateClusterStatus(ctx, c)
}

type unreportedLoss struct{ cluster.Objects }

// UpdateClusterStatus implements cluster.Objects.
func (o unreportedLoss) UpdateClusterStatus(ctx context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	if !kubernetes.ConditionIs(c, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) && c.Status.Phase == v1beta2.ClusterPhaseFailed {
		return o.Objects.GetCluster(ctx, c.Namespace, c.Name)
	}
	return o.Objects.UpdateClusterStatus(ctx, c)
}

// countsPods takes pods that are ready for members that serve.
type countsPods struct {
	cluster.Objects
	cache cluster.Cache
}

// UpdateClusterStatus implements cluster.Objects.
func (o countsPods) UpdateClusterStatus(ctx context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	pods, err := o.cache.Pods(c.Namespace, c.Name)
	if err != nil {
		return nil, err
	}
	running := 0
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	if running == int(*c.Spec.Replicas) && running > 0 {
		c = said(c, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	}
	return o.Objects.UpdateClusterStatus(ctx, c)
}

// giveUp takes a cluster for failed that another process had begun to make.
func giveUp(m *manager.Manager, c cluster.Config) cluster.Config {
	failed := map[types.UID]bool{}
	return deciding(func(m *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
		if m.Reconciles == 1 && o.Cluster.Status.Phase == v1beta2.ClusterPhaseCreating {
			failed[o.Cluster.UID] = true
		}
		if failed[o.Cluster.UID] {
			return planner.Plan{}
		}
		return decide(o)
	})(m, c)
}

// deaf sends no requests by itself, and does not wait for members to respond.
func deaf(m *manager.Manager, c cluster.Config) cluster.Config {
	c.Waker = noWaker{}
	return doing(func(_ planner.Observed, plan planner.Plan) planner.Plan {
		plan.RequeueAfter = 0
		return plan
	})(m, c)
}

type noWaker struct{}

// Await implements cluster.Waker.
func (noWaker) Await(types.NamespacedName, etcd.Target, etcd.Endpoint) {}

// AwaitEnd implements cluster.Waker.
func (noWaker) AwaitEnd(types.NamespacedName, etcd.Target, etcd.Endpoint) {}

type unblocked struct{ cluster.Objects }

// UpdateClusterStatus implements cluster.Objects.
func (o unblocked) UpdateClusterStatus(ctx context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	c = c.DeepCopy()
	c.Status.BlockedBy = nil
	return o.Objects.UpdateClusterStatus(ctx, c)
}

// forgetRecoveries knows of the last recovery only.
func forgetRecoveries(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Record.Recoveries, o.Witnesses = nil, planner.Witnesses{}
	return decide(o)
}

// forgetWitnesses knows of recoveries from the record only, which it does not look for elsewhere.
func forgetWitnesses(m *manager.Manager, c cluster.Config) cluster.Config {
	c.Objects = unlabelled{c.Objects}
	return deciding(func(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
		o.Witnesses = planner.Witnesses{}
		return decide(o)
	})(m, c)
}

// unlabelled finds no pod, no PVC and no Service of the cluster in the live API.
type unlabelled struct{ cluster.Objects }

// ListPods implements cluster.Objects.
func (o unlabelled) ListPods(context.Context, string, string) ([]corev1.Pod, error) { return nil, nil }

// ListPVCs implements cluster.Objects.
func (o unlabelled) ListPVCs(context.Context, string, string) ([]corev1.PersistentVolumeClaim, error) {
	return nil, nil
}

// GetService implements cluster.Objects.
func (o unlabelled) GetService(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	service, err := o.Objects.GetService(ctx, namespace, name)
	if err == nil {
		delete(service.Annotations, resources.AnnotationRecoveries)
	}
	return service, err
}

// believeStatus goes by the status where that tells of a recovery.
func believeStatus(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	if said := o.Cluster.Status.Recovery; said.IsInProgress() {
		o.Record.Recovery, o.Record.Recoveries, o.Witnesses = said, nil, planner.Witnesses{}
	}
	return decide(o)
}

// patientGate knows no time that goes back.
type patientGate struct {
	cluster.Gate
	last int64
	seen func() string
}

func patient(m *manager.Manager, c cluster.Config) cluster.Config {
	c.Gate = &patientGate{Gate: c.Gate, seen: func() string { return m.Cache.Kinds[kubernetes.KindCluster].Version }}
	return c
}

// Note implements cluster.Gate.
func (g *patientGate) Note(key types.NamespacedName, object metav1.Object) {
	if _, ours := object.(*v1beta2.EtcdCluster); ours {
		g.last = max(g.last, number(object.GetResourceVersion()))
	}
	g.Gate.Note(key, object)
}

// IsReady implements cluster.Gate.
func (g *patientGate) IsReady(key types.NamespacedName) bool {
	return g.Gate.IsReady(key) && number(g.seen()) >= g.last
}

func number(version string) int64 {
	n, _ := strconv.ParseInt(version, 10, 64)
	return n
}
