// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
)

func TestCertificatesAreMeasured(t *testing.T) {
	t.Parallel()
	end, later := metav1.NewTime(time.Unix(1234567890, 0)), metav1.NewTime(time.Unix(1234567891, 0))
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	cluster.Status.Certificates = []v1beta2.CertificateStatus{
		{Use: v1beta2.CertificateUsePeer, NotAfter: &later}, {Use: v1beta2.CertificateUseServer},
	}
	cluster.Status.Clients = []v1beta2.ClientStatus{{Name: "without"}, {Name: "app", NotAfter: &end}}
	if err := indexer.Add(cluster); err != nil {
		t.Fatal(err)
	}
	responsible := true
	registry := metrics.NewKubeRegistry()
	if err := registry.CustomRegister(NewCertificateCollector(etcdlisters.NewEtcdClusterLister(indexer), func(metav1.Object) bool { return responsible })); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "etcd_operator_certificate_not_after_timestamp_seconds" {
				if got := family.GetMetric()[0].GetGauge().GetValue(); got != 1234567890 {
					t.Errorf("it ends at %v", got)
				}
				return len(family.GetMetric())
			}
		}
		return 0
	}
	if got := count(); got != 1 {
		t.Errorf("%d certificates are measured, not the one that ends first", got)
	}
	responsible = false
	if got := count(); got != 0 {
		t.Errorf("%d certificates of a cluster are measured that is another controller's", got)
	}
	responsible = true
	if err := indexer.Delete(cluster); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != 0 {
		t.Errorf("%d certificates of a deleted cluster are measured", got)
	}
}
