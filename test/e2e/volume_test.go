// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	largerVolumes  = `{"spec":{"pod":{"persistentVolumeClaimSpec":{"resources":{"requests":{"storage":"128Mi"}}}}}}`
	oldVolumes     = `{"spec":{"pod":{"persistentVolumeClaimSpec":{"resources":{"requests":{"storage":"64Mi"}}}}}}`
	smallerVolumes = `{"spec":{"pod":{"persistentVolumeClaimSpec":{"resources":{"requests":{"storage":"32Mi"}}}}}}`
	keepVolumes    = `{"spec":{"pod":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain"}}}}`
	dropVolumes    = `{"spec":{"pod":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}}}`
)

// pvcs reads the PVCs of a cluster by their names.
func (c *cluster) pvcs() map[string]*corev1.PersistentVolumeClaim {
	c.Helper()
	list, err := env.Kube.CoreV1().PersistentVolumeClaims(c.namespace).List(c.ctx(), metav1.ListOptions{LabelSelector: "etcd_cluster=" + c.name})
	c.must(err, "list the PVCs")
	pvcs := map[string]*corev1.PersistentVolumeClaim{}
	for i := range list.Items {
		pvcs[list.Items[i].Name] = &list.Items[i]
	}
	return pvcs
}

// awaitPVCs waits until there are n PVCs and each matches.
func (c *cluster) awaitPVCs(what string, n int, matches func(*corev1.PersistentVolumeClaim) bool) {
	c.Helper()
	view, err := env.PVCs(c.ctx(), c.namespace, c.name)
	c.must(err, "watch the PVCs")
	defer view.Close()
	err = view.Await(c.within(repairWithin), func(list []*corev1.PersistentVolumeClaim) bool {
		return len(list) == n && !slices.ContainsFunc(list, func(p *corev1.PersistentVolumeClaim) bool { return !matches(p) })
	})
	c.must(err, "%d PVCs of %s %s", n, c.name, what)
}

func isOwnerless(p *corev1.PersistentVolumeClaim) bool { return len(p.OwnerReferences) == 0 }

func asks(size string) func(*corev1.PersistentVolumeClaim) bool {
	return func(p *corev1.PersistentVolumeClaim) bool {
		return p.Spec.Resources.Requests.Storage().String() == size
	}
}

// volumesSay waits for the condition of the volumes.
func (c *cluster) volumesSay(status corev1.ConditionStatus, reason string) v1beta2.ClusterCondition {
	c.Helper()
	object := c.await(c.ctx(), "VolumesAsDeclared="+string(status)+" because of "+reason, func(object *clusterObject) bool {
		cond := condition(object, v1beta2.ClusterConditionVolumesAsDeclared)
		return object.Status.ObservedGeneration == object.Generation && cond.Status == status && cond.Reason == reason
	})
	return condition(object, v1beta2.ClusterConditionVolumesAsDeclared)
}

// TestVolumesKept changes the retention of volumes in use, hibernates the cluster, resumes
// it, and deletes it: the volumes stay, as the last declaration says, and their annotations say why.
func TestVolumesKept(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("kept", 1, etcdVersion, withVolumes)
	data, ids, before := c.fill(), c.ids(), c.pvcs()
	c.awaitPVCs("without owner", 1, isOwnerless)
	c.patch(keepVolumes)
	c.patch(dropVolumes)

	s.kubectl("scale", "etcdcluster/kept", "--replicas=0")
	c.await(s.ctx(), "hibernation", func(object *clusterObject) bool { return object.Status.Phase == v1beta2.ClusterPhaseHibernated })
	c.patch(keepVolumes)
	s.kubectl("scale", "etcdcluster/kept", "--replicas=1")
	c.settle(1)
	c.holds(data)
	if now := c.ids(); !maps.Equal(now, ids) {
		t.Errorf("awake the members are %x, not %x", now, ids)
	}

	s.kubectl("delete", "etcdcluster", "kept", "--wait")
	s.awaitDeleted("pods,services,pdb", "etcd_cluster=kept")
	for name, pvc := range c.pvcs() {
		if old := before[name]; old == nil || old.UID != pvc.UID || pvc.DeletionTimestamp != nil {
			t.Errorf("PVC %s was recreated or is being deleted", name)
		}
		if why := pvc.Annotations[resources.AnnotationRetained]; why != resources.RetainedByPolicy {
			t.Errorf("PVC %s was retained because of %q", name, why)
		}
	}
	if n := len(c.pvcs()); n != 1 {
		t.Errorf("%d PVCs stayed, not 1", n)
	}
}

// TestVolumesKeptWhenScaled scales members away whose volumes are to be kept: they stay,
// belong to no member, and no other member ever gets them.
func TestVolumesKeptWhenScaled(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("shrunk", 3, etcdVersion, withVolumes, "\n    persistentVolumeClaimRetentionPolicy: {whenScaled: Retain}")
	data, before := c.fill(), c.pvcs()
	s.kubectl("scale", "etcdcluster/shrunk", "--replicas=1")
	c.settle(1)
	c.holds(data)
	var left []string
	for name, pvc := range c.pvcs() {
		if pvc.UID != before[name].UID || pvc.DeletionTimestamp != nil {
			t.Errorf("PVC %s was recreated or is being deleted", name)
		}
		if pvc.Annotations[resources.AnnotationClusterUID] == "" {
			left = append(left, name)
		}
	}
	if len(left) != 2 {
		t.Errorf("PVCs %q were left, not two", left)
	}
	s.kubectl("scale", "etcdcluster/shrunk", "--replicas=2")
	c.settle(2)
	for _, p := range c.members.Live() {
		if slices.Contains(left, p.Name) {
			t.Errorf("%s runs on what a removed member has left", p.Name)
		}
	}
	c.holds(data)
}

// TestVolumesMayNotGrow declares larger volumes on a storage class that does not allow it.
// The status reports that, the cluster keeps serving, and the change can be reverted.
func TestVolumesMayNotGrow(t *testing.T) {
	env.RequireLocal(t, harness.FixedVolume)
	t.Parallel()
	s := start(t)
	c := s.create("fixed", 1, etcdVersion, withVolumes)
	data, uids := c.fill(), c.uids()
	s.contains(s.rejected("", "patch", "etcd", "fixed", "--type=merge", "-p", smallerVolumes), "can grow but not shrink")
	c.volumesSay(corev1.ConditionTrue, "AsDeclared")

	c.patch(largerVolumes)
	cond := c.volumesSay(corev1.ConditionFalse, v1beta2.ReasonGrowthRejected)
	s.contains(cond.Message, "rejects the growth", "resize", "Declare the old size again")
	c.awaitPVCs("to be as they were", 1, asks("64Mi"))
	s.contains(strings.Join(c.reasons(), " "), "VolumeGrowthRefused")
	c.settle(1)
	c.same(c.ids(), uids, true)

	c.patch(oldVolumes)
	c.volumesSay(corev1.ConditionTrue, "AsDeclared")
	s.contains(s.rejected("", "patch", "etcd", "fixed", "--type=merge", "-p", smallerVolumes), "can grow but not shrink")
	c.holds(data)
}

// TestVolumesGrow declares larger volumes on a storage class that allows it, while
// a client writes: the PVCs ask for them and no pod restarts. The local Kubernetes has
// nothing that resizes volumes, so the test says at the end what that would have said.
func TestVolumesGrow(t *testing.T) {
	env.RequireLocal(t, harness.FixedVolume)
	t.Parallel()
	s := start(t)
	class := s.storageClass()
	c := s.create("grows", 3, etcdVersion, withVolumes+"\n      storageClassName: "+class)
	data, uids, ids := c.fill(), c.uids(), c.ids()
	w := c.write()
	c.patch(largerVolumes)
	c.awaitPVCs("to ask for more", 3, asks("128Mi"))
	c.volumesSay(corev1.ConditionFalse, "Growing")
	s.contains(strings.Join(c.reasons(), " "), "VolumeGrows")
	for _, pvc := range c.pvcs() {
		pvc.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("128Mi")}
		_, err := env.Kube.CoreV1().PersistentVolumeClaims(s.namespace).UpdateStatus(s.ctx(), pvc, metav1.UpdateOptions{})
		s.must(err, "say that the volume of %s has grown", pvc.Name)
	}
	c.volumesSay(corev1.ConditionTrue, "AsDeclared")
	c.settle(3)
	c.same(ids, uids, true)
	c.stopped(w)
	c.holds(data)

	// A member that joins now has a volume of the new size from the beginning.
	s.kubectl("scale", "etcdcluster/grows", "--replicas=4")
	c.settle(4)
	c.awaitPVCs("to ask for as much", 4, asks("128Mi"))
}

// storageClass makes a class like that of the local Kubernetes whose volumes may grow.
func (s *scenario) storageClass() string {
	s.Helper()
	class, err := env.Kube.StorageV1().StorageClasses().Get(s.ctx(), "local-path", metav1.GetOptions{})
	s.must(err, "read the storage class of the local Kubernetes")
	created, err := env.Kube.StorageV1().StorageClasses().Create(s.ctx(), &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{GenerateName: "growing-", Labels: map[string]string{suiteLabel: runName}},
		Provisioner:          class.Provisioner,
		Parameters:           class.Parameters,
		ReclaimPolicy:        class.ReclaimPolicy,
		VolumeBindingMode:    class.VolumeBindingMode,
		AllowVolumeExpansion: ptr.To(true),
	}, metav1.CreateOptions{})
	s.must(err, "make a storage class")
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := env.Kube.StorageV1().StorageClasses().Delete(ctx, created.Name, metav1.DeleteOptions{}); err != nil {
			s.Error(fmt.Errorf("delete storage class %s: %w", created.Name, err))
		}
	})
	return created.Name
}

// waitsForTheController deletes a cluster whose volumes go with it, while the controller does
// not run: the object waits for the controller, which says what it has deleted.
func (c *cluster) waitsForTheController() {
	c.Helper()
	c.kubectl("delete", "etcd", c.name, "--wait=false")
	if object := c.get(); object.DeletionTimestamp == nil || len(c.pvcs()) != 1 {
		c.Errorf("without a controller: %+v, %d PVCs", object.ObjectMeta, len(c.pvcs()))
	}
	_, err := env.ScaleProgram(c.ctx(), harness.Controller, 1)
	c.must(err, "start the controller")
	c.kubectl("wait", "--for=delete", "etcd/"+c.name, "--timeout=60s")
	c.awaitDeleted("pods,services,pdb,pvc", "etcd_cluster="+c.name)
	c.contains(strings.Join(c.reasons(), " "), "VolumesDeleted")
}
