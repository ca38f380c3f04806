// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package orphanedpvc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestPVCWithoutClusterIsCounted: a PVC counts while its EtcdCluster does not exist, unless a
// retention policy keeps it or it is being deleted.
func TestPVCWithoutClusterIsCounted(t *testing.T) {
	t.Parallel()
	pvcs := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	clusters := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	add := func(store cache.Indexer, object any) {
		t.Helper()
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	addPVC := func(namespace, name, cluster, uid string, edit ...func(*corev1.PersistentVolumeClaim)) {
		t.Helper()
		p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{resources.LabelCluster: cluster},
			Annotations: map[string]string{resources.AnnotationClusterUID: uid},
		}}
		for _, e := range edit {
			e(p)
		}
		add(pvcs, p)
	}
	add(clusters, &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "there", UID: "1"}})
	addPVC("n", "there-1", "there", "1")
	addPVC("n", "there-0", "there", "0") // of an earlier cluster of the same name
	addPVC("n", "gone-1", "gone", "2")
	addPVC("n", "gone-2", "gone", "2", func(p *corev1.PersistentVolumeClaim) { p.DeletionTimestamp = ptr.To(metav1.Now()) })
	addPVC("n", "gone-3", "gone", "2", func(p *corev1.PersistentVolumeClaim) { p.Annotations[resources.AnnotationRetained] = "true" })
	addPVC("m", "there-2", "there", "1") // the cluster of this name is in another namespace
	addPVC("m", "none-1", "none", "")    // it was never said to belong to a cluster
	addPVC("o", "unlabelled-1", "", "3") // and this PVC has no label

	leads := true
	registry := metrics.NewKubeRegistry()
	if err := registry.CustomRegister(NewCollector(
		corelisters.NewPersistentVolumeClaimLister(pvcs), etcdlisters.NewEtcdClusterLister(clusters), func() bool { return leads })); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"m": 1, "n": 2}
	if diff := cmp.Diff(want, scrape(t, registry)); diff != "" {
		t.Errorf("the series differ: %s", diff)
	}
	leads = false
	if got := scrape(t, registry); len(got) != 0 {
		t.Errorf("a process without the lease has series: %v", got)
	}
}

// scrape returns the number of orphaned PVCs that a scrape shows, by namespace.
func scrape(t *testing.T, registry metrics.KubeRegistry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			counts[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return counts
}
