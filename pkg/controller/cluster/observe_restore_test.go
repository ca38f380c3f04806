// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// lossRestores is a cache that holds at most one EtcdRestore, whatever its name is.
type lossRestores struct {
	Cache
	status *v1beta2.RestoreStatus
	err    error
	reads  []string
}

func (c *lossRestores) Restore(_, name string) (*v1beta2.EtcdRestore, error) {
	c.reads = append(c.reads, name)
	if c.err == nil && c.status == nil {
		return nil, apierrors.NewNotFound(v1beta2.Resource("etcdrestores"), name)
	}
	return &v1beta2.EtcdRestore{Status: *c.status.DeepCopy()}, c.err
}

// TestLossRestoreIsObserved: the EtcdRestore of the loss of all members is read only if they are lost
// and the cluster may recover without a request.
func TestLossRestoreIsObserved(t *testing.T) {
	t.Parallel()
	failed := &v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseFailed, Reason: "Abandoned"}
	for name, test := range map[string]struct {
		cache lossRestores
		edit  func(*seen)
		reads int
	}{
		"it failed":                  {lossRestores{status: failed}, nil, 1},
		"there is none":              {lossRestores{}, nil, 1},
		"it cannot be read":          {lossRestores{status: failed, err: errors.New("no")}, nil, 1},
		"a member is left":           {lossRestores{status: failed}, func(s *seen) { s.Pods = afterRemoval(stopped()).Pods }, 0},
		"a PVC is left":              {lossRestores{status: failed}, func(s *seen) { s.PVCs = []planner.PVC{{Name: "c-b", Owned: true}} }, 0},
		"it must not recover itself": {lossRestores{status: failed}, func(s *seen) { s.Cluster.Spec.Recovery = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := afterRemoval(stopped())
			s.Pods, s.PVCs = nil, nil
			s.Etcd.Members[0].Reason = planner.ReasonNoPod
			s.Cluster.Spec.Recovery = &v1beta2.RecoveryPolicy{QuorumLoss: v1beta2.RecoveryAutomatic}
			if test.edit != nil {
				test.edit(s)
			}
			cache := test.cache
			err := observeLossRestore(&run{Reconciler: &Reconciler{Config: Config{Cache: &cache}}, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s})
			if !errors.Is(err, cache.err) {
				t.Errorf("error %v", err)
			}
			if found := s.LossRestore != nil; found != (test.reads > 0 && cache.status != nil && cache.err == nil) {
				t.Errorf("observed %+v", s.LossRestore)
			}
			if len(cache.reads) != test.reads {
				t.Errorf("read %q", cache.reads)
			}
		})
	}
}

// TestRecoveryRestoreIsObserved: of the EtcdRestore that has asked for the recovery under way, and of no other one that has
// its name, the cluster reads whether a fresh pre-restore backup is required.
func TestRecoveryRestoreIsObserved(t *testing.T) {
	t.Parallel()
	asked := v1beta2.RecoveryStatus{
		Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseFilling, Source: v1beta2.RecoverySource{Restore: "r"},
	}
	for name, test := range map[string]struct {
		edit  func(*v1beta2.RecoveryStatus)
		reads int
		found bool
		over  bool
		phase v1beta2.RestorePhase
	}{
		"it is under way":            {func(*v1beta2.RecoveryStatus) {}, 1, true, false, v1beta2.RestorePhaseRestoring},
		"its EtcdRestore has ended":  {func(*v1beta2.RecoveryStatus) {}, 1, false, true, v1beta2.RestorePhaseFailed},
		"the name is of a later one": {func(r *v1beta2.RecoveryStatus) { r.ID = "earlier" }, 1, false, true, ""},
		"the recovery has ended":     {func(r *v1beta2.RecoveryStatus) { r.Phase = v1beta2.RecoveryPhaseAbandoned }, 0, false, false, ""},
		"no restore has asked":       {func(r *v1beta2.RecoveryStatus) { r.Trigger = v1beta2.RecoveryTriggerRequest }, 0, false, false, ""},
	} {
		s, cache := afterRemoval(stopped()), lossRestores{status: &v1beta2.RestoreStatus{Phase: test.phase}}
		s.Record.Recovery = asked.DeepCopy()
		test.edit(s.Record.Recovery)
		err := observeRecoveryRestore(&run{Reconciler: &Reconciler{Config: Config{Cache: &cache}}, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s})
		if found := s.RecoveryRestore != nil; err != nil || found != test.found || s.RecoveryRestoreOver != test.over || len(cache.reads) != test.reads {
			t.Errorf("%s: found %t, read %q, error %v", name, found, cache.reads, err)
		}
	}
}

// pvcsByName is a cache that holds PVCs and no pod.
type pvcsByName struct {
	Cache
	pvcs map[string]*corev1.PersistentVolumeClaim
}

func (*pvcsByName) Pod(_, name string) (*corev1.Pod, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

func (c *pvcsByName) PVC(_, name string) (*corev1.PersistentVolumeClaim, error) {
	if pvc := c.pvcs[name]; pvc != nil {
		return pvc, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
}

// TestFencedPVCsAreObserved: the fence takes the label of the cluster from the PVCs of old members. They are still there for
// the case that the restore is abandoned.
func TestFencedPVCsAreObserved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		phase v1beta2.RecoveryPhase
		edit  func(*corev1.PersistentVolumeClaim)
		want  []string
	}{
		"the fence has taken it":       {v1beta2.RecoveryPhaseCutover, func(*corev1.PersistentVolumeClaim) {}, []string{"c-old"}},
		"it has its label":             {v1beta2.RecoveryPhaseCutover, func(p *corev1.PersistentVolumeClaim) { p.Labels = resources.Labels("c") }, nil},
		"it is being deleted":          {v1beta2.RecoveryPhaseCutover, func(p *corev1.PersistentVolumeClaim) { p.DeletionTimestamp = &metav1.Time{} }, nil},
		"another cluster has taken it": {v1beta2.RecoveryPhaseCutover, func(p *corev1.PersistentVolumeClaim) { p.Labels[resources.LabelFenced] = "d" }, nil},
		"it is of another cluster":     {v1beta2.RecoveryPhaseCutover, func(p *corev1.PersistentVolumeClaim) { p.OwnerReferences, p.Annotations = nil, nil }, nil},
		"no cutover is under way":      {v1beta2.RecoveryPhaseFilling, func(*corev1.PersistentVolumeClaim) {}, nil},
	} {
		c := stopped().cluster
		old := resources.PVC(c, "c-old")
		resources.IsFenced(&old.Labels, "c")
		test.edit(old)
		s := &seen{Observed: planner.Observed{Cluster: c}}
		s.Record.Recovery = &v1beta2.RecoveryStatus{ID: "r", Phase: test.phase, RecoveryMember: "c-a", OldMembers: []string{"c-lost", "c-old"}}
		cache := &pvcsByName{pvcs: map[string]*corev1.PersistentVolumeClaim{"c-old": old}}
		err := observeRecoveryPod(&run{Reconciler: &Reconciler{Config: Config{Cache: cache}}, seen: s})
		if err != nil || !slices.Equal(s.Fenced, test.want) {
			t.Errorf("%s: observed %q, error %v", name, s.Fenced, err)
		}
	}
}
