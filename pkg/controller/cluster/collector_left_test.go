// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

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

// TestLeftPVCsAreCounted: a PVC counts while its EtcdCluster does not exist, unless it
// stays on purpose or goes.
func TestLeftPVCsAreCounted(t *testing.T) {
	t.Parallel()
	claims := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	clusters := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	add := func(store cache.Indexer, object any) {
		t.Helper()
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(namespace, name, cluster, uid string, edit ...func(*corev1.PersistentVolumeClaim)) {
		t.Helper()
		p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{resources.LabelCluster: cluster},
			Annotations: map[string]string{resources.AnnotationClusterUID: uid},
		}}
		for _, e := range edit {
			e(p)
		}
		add(claims, p)
	}
	add(clusters, &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "there", UID: "1"}})
	claim("n", "there-1", "there", "1")
	claim("n", "there-0", "there", "0") // of an earlier cluster of the same name
	claim("n", "gone-1", "gone", "2")
	claim("n", "gone-2", "gone", "2", func(p *corev1.PersistentVolumeClaim) { p.DeletionTimestamp = ptr.To(metav1.Now()) })
	claim("n", "gone-3", "gone", "2", func(p *corev1.PersistentVolumeClaim) { p.Annotations[resources.AnnotationRetained] = "true" })
	claim("m", "there-2", "there", "1") // the cluster of this name is in another namespace
	claim("m", "none-1", "none", "")    // it was never said to belong to a cluster
	claim("o", "nobody-1", "", "3")     // nor does this one carry the label

	leads := true
	registry := metrics.NewKubeRegistry()
	if err := registry.CustomRegister(NewLeftCollector(
		corelisters.NewPersistentVolumeClaimLister(claims), etcdlisters.NewEtcdClusterLister(clusters), func() bool { return leads })); err != nil {
		t.Fatal(err)
	}
	const want = "etcd_operator_pvcs_without_cluster{namespace=m} 1\netcd_operator_pvcs_without_cluster{namespace=n} 2"
	if got := scrape(t, registry); got != want {
		t.Errorf("the series are\n%s\nnot\n%s", got, want)
	}
	leads = false
	if got := scrape(t, registry); got != "" {
		t.Errorf("a process that does not act has series:\n%s", got)
	}
}
