// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/manager"
)

func TestResponsible(t *testing.T) {
	t.Parallel()
	cluster := func(namespace, scope string) *v1beta2.EtcdCluster {
		c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
		if scope != "" {
			c.Annotations = map[string]string{manager.ScopeAnnotation: scope}
		}
		return c
	}
	for name, test := range map[string]struct {
		namespace   string
		clusterWide bool
		cluster     *v1beta2.EtcdCluster
		want        bool
	}{
		"everything, plain":                {cluster: cluster("a", ""), want: true},
		"everything, marked":               {cluster: cluster("a", "clusterwide"), want: true},
		"namespaced, plain":                {namespace: "a", cluster: cluster("a", ""), want: true},
		"namespaced, marked":               {namespace: "a", cluster: cluster("a", "clusterwide"), want: false},
		"namespaced, elsewhere":            {namespace: "a", cluster: cluster("b", ""), want: false},
		"clusterwide, plain":               {clusterWide: true, cluster: cluster("a", ""), want: false},
		"clusterwide, marked":              {clusterWide: true, cluster: cluster("b", "clusterwide"), want: true},
		"clusterwide, marked as something": {clusterWide: true, cluster: cluster("b", "other"), want: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := manager.NewOptions()
			options.Namespace, options.ClusterWide = test.namespace, test.clusterWide
			if got := options.Responsible(test.cluster); got != test.want {
				t.Errorf("responsible: %t, want %t", got, test.want)
			}
		})
	}
}

func TestOptionsThatContradictAreRefused(t *testing.T) {
	t.Parallel()
	both := manager.NewOptions()
	both.Namespace, both.ClusterWide = "a", true
	if both.Complete() == nil {
		t.Error("--namespace with --cluster-wide was accepted")
	}
	idle := manager.NewOptions()
	idle.Workers = 0
	if idle.Complete() == nil {
		t.Error("--workers=0 was accepted")
	}
	fine := manager.NewOptions()
	if err := fine.Complete(); err != nil || fine.Identity == "" {
		t.Errorf("defaults: error %v, identity %q", err, fine.Identity)
	}
}
