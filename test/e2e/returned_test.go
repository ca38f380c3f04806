// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// takeBack is what the status advises to go on with the data of an earlier cluster.
	takeBack = `{"spec":{"bootstrap":{"fromVolumes":{}}}}`
	retain   = `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`
	reclaim  = `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`
	// unclaimed releases a PV, so that a PVC of the same name binds it again.
	unclaimed = `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`
)

// exported is what a backup tool keeps of the objects of a cluster.
type exported struct {
	pvcs     map[string]*corev1.PersistentVolumeClaim
	secrets  []corev1.Secret
	maps     []corev1.ConfigMap
	services []corev1.Service
}

// stripped returns the metadata of an object as backup tools bring it back: without owner, UID and status.
func stripped(m *metav1.ObjectMeta) metav1.ObjectMeta {
	annotations := maps.Clone(m.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "pv.kubernetes.io/") || strings.HasPrefix(key, "volume.")
	})
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: annotations}
}

// export reads what a backup tool keeps of the cluster, and has its PVs outlive their PVCs.
func (c *cluster) export() *exported {
	c.Helper()
	core, of := env.Kube.CoreV1(), metav1.ListOptions{LabelSelector: "etcd_cluster=" + c.name}
	secrets, err := core.Secrets(c.namespace).List(c.ctx(), of)
	c.must(err, "list the Secrets")
	configMaps, err := core.ConfigMaps(c.namespace).List(c.ctx(), of)
	c.must(err, "list the ConfigMaps")
	services, err := core.Services(c.namespace).List(c.ctx(), of)
	c.must(err, "list the Services")
	e := &exported{pvcs: c.pvcs(), secrets: secrets.Items, maps: configMaps.Items, services: services.Items}
	for _, pvc := range e.pvcs {
		_, err := core.PersistentVolumes().Patch(c.ctx(), pvc.Spec.VolumeName, types.MergePatchType, []byte(retain), metav1.PatchOptions{})
		c.must(err, "retain PV %s", pvc.Spec.VolumeName)
		c.Cleanup(func() { // the PVC of the test goes with its namespace, and then the PV
			ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
			defer cancel()
			if _, err := core.PersistentVolumes().Patch(ctx, pvc.Spec.VolumeName, types.MergePatchType, []byte(reclaim), metav1.PatchOptions{}); err != nil {
				c.Errorf("reclaim PV %s: %v", pvc.Spec.VolumeName, err)
			}
		})
	}
	return e
}

// bringBack creates the objects again, as a backup tool does.
func (c *cluster) bringBack(e *exported) {
	c.Helper()
	core := env.Kube.CoreV1()
	for _, pvc := range e.pvcs {
		_, err := core.PersistentVolumes().Patch(c.ctx(), pvc.Spec.VolumeName, types.MergePatchType, []byte(unclaimed), metav1.PatchOptions{})
		c.must(err, "release PV %s", pvc.Spec.VolumeName)
		_, err = core.PersistentVolumeClaims(c.namespace).Create(c.ctx(), &corev1.PersistentVolumeClaim{ObjectMeta: stripped(&pvc.ObjectMeta), Spec: pvc.Spec}, metav1.CreateOptions{})
		c.must(err, "bring PVC %s back", pvc.Name)
	}
	for i := range e.secrets {
		s := &e.secrets[i]
		_, err := core.Secrets(c.namespace).Create(c.ctx(), &corev1.Secret{ObjectMeta: stripped(&s.ObjectMeta), Type: s.Type, Data: s.Data}, metav1.CreateOptions{})
		c.must(err, "bring Secret %s back", s.Name)
	}
	for i := range e.maps {
		m := &e.maps[i]
		_, err := core.ConfigMaps(c.namespace).Create(c.ctx(), &corev1.ConfigMap{ObjectMeta: stripped(&m.ObjectMeta), Data: m.Data}, metav1.CreateOptions{})
		c.must(err, "bring ConfigMap %s back", m.Name)
	}
	for i := range e.services {
		s := &e.services[i]
		if s.Spec.ClusterIP != corev1.ClusterIPNone {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		}
		_, err := core.Services(c.namespace).Create(c.ctx(), &corev1.Service{ObjectMeta: stripped(&s.ObjectMeta), Spec: s.Spec}, metav1.CreateOptions{})
		c.must(err, "bring Service %s back", s.Name)
	}
}

// findsVolumes waits until the status names the PVCs of the earlier cluster, and makes sure that nothing began.
func (c *cluster) findsVolumes(names ...string) {
	c.Helper()
	object := c.await(c.ctx(), "waiting beside PVCs", func(object *clusterObject) bool {
		return object.Status.BlockedBy != nil && object.Status.BlockedBy.Reason == "VolumesFound"
	})
	c.contains(object.Status.BlockedBy.Message, names...)
	c.contains(object.Status.BlockedBy.Unblock, append([]string{"fromVolumes", "kubectl label pvc -n " + c.namespace, "etcd_cluster-"}, names...)...)
	if pods := c.kubectl("get", "pods", "-l", "etcd_cluster="+c.name, "-o", "name"); pods != "" {
		c.Errorf("beside the PVCs there are %s", pods)
	}
}

// TestReturnedNamespace brings all objects of a cluster back as a backup tool does: without owners, with other UIDs,
// beside an EtcdCluster without a status. The cluster does not begin empty, and takes everything back on request:
// data, members and CA.
func TestReturnedNamespace(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster("returned")
	c.secure("returned-client-tls", "tls.crt", "tls.key", "ca.crt")
	desired := manifest("returned", 3, etcdVersion, withAutoTLS, withVolumes)
	s.apply(desired)
	c.settle(3)
	data, ids, kept := c.fill(), c.ids(), c.export()
	ca := c.caCertificate()

	s.kubectl("delete", "etcdcluster", "returned", "--wait")
	s.awaitDeleted("pods,services,pdb,pvc,secrets,configmaps", "etcd_cluster=returned")
	c.bringBack(kept)
	s.apply(desired)
	c.findsVolumes(slices.Collect(maps.Keys(kept.pvcs))...)

	c.patch(takeBack)
	object := c.settle(3)
	c.holds(data)
	if now := c.ids(); !maps.Equal(now, ids) {
		t.Errorf("the members are %x, and were %x", now, ids)
	}
	if now := c.caCertificate(); !bytes.Equal(now, ca) {
		t.Error("another CA signs")
	}
	c.awaitPVCs("taken back", 3, func(p *corev1.PersistentVolumeClaim) bool {
		return isOwnerless(p) && p.Annotations[resources.AnnotationClusterUID] == string(object.UID) && resources.TakenBackFrom(p) == ""
	})
	s.contains(strings.Join(c.reasons(), " "), "VolumeTakenBack")

	// It is a cluster as any other from now on.
	s.kubectl("scale", "etcdcluster/returned", "--replicas=1")
	c.settle(1)
	c.holds(data)
}

// caCertificate returns the certificate of the CA of the cluster.
func (c *cluster) caCertificate() []byte {
	c.Helper()
	name := resources.CASecret(&v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: c.name}})
	secret, err := env.Kube.CoreV1().Secrets(c.namespace).Get(c.ctx(), name, metav1.GetOptions{})
	c.must(err, "read Secret %s", name)
	return secret.Data[corev1.TLSCertKey]
}

// TestRetainedVolumesFound deletes a cluster whose PVCs are retained, and creates it again: it takes them back on
// request. Deleted and created once more, it begins empty beside them when the user says so.
func TestRetainedVolumesFound(t *testing.T) {
	t.Parallel()
	s := start(t)
	desired := manifest("found", 1, etcdVersion, withVolumes, "\n    persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}")
	c := s.cluster("found")
	s.apply(desired)
	c.settle(1)
	data, before := c.fill(), slices.Collect(maps.Keys(c.pvcs()))
	again := func() {
		t.Helper()
		s.kubectl("delete", "etcdcluster", "found", "--wait")
		s.awaitDeleted("pods,services,pdb,configmaps", "etcd_cluster=found")
		s.apply(desired)
		c.findsVolumes(before...)
	}
	again()
	c.patch(takeBack)
	c.settle(1)
	c.holds(data)
	s.contains(s.rejected("", "patch", "etcd", "found", "--type=merge", "-p", `{"spec":{"bootstrap":{"existing":{"clientEndpoints":["http://a:2379"]}}}}`), "fromVolumes")

	again()
	s.kubectl(append(append([]string{"label", "pvc"}, before...), "etcd_cluster-", "etcd_recovery-")...)
	c.settle(1)
	if now := slices.Collect(maps.Keys(c.pvcs())); slices.Equal(now, before) {
		t.Errorf("it began with PVCs %q", now)
	}
	for _, name := range before {
		if left := s.kubectl("get", "pvc", name, "-o", "jsonpath={.metadata.deletionTimestamp}"); left != "" {
			t.Error(fmt.Errorf("PVC %s is deleted since %s", name, left))
		}
	}
}
