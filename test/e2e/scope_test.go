// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scopeAnnotation marks a cluster for a clusterwide controller.
const scopeAnnotation = "\n  annotations: {etcd.database.coreos.com/scope: clusterwide}"

// scopes runs a namespaced controller first and a clusterwide one beside it
// later. Each of them touches its own clusters only.
func scopes(t *testing.T) {
	s := start(t)
	other := s.another("other")

	one := func(name string, marked bool) string {
		text := manifest(name, 1, etcdVersion)
		if marked {
			text = strings.Replace(text, "name: "+name, "name: "+name+scopeAnnotation, 1)
		}
		return text
	}
	for _, in := range []*scenario{s, other} {
		in.apply(one("plain", false))
		in.apply(one("marked", true))
	}

	s.controller("namespaced", "--namespace="+s.namespace)
	s.cluster("plain").settle(1)
	s.controller("clusterwide", "--cluster-wide")
	s.cluster("marked").settle(1)
	other.cluster("marked").settle(1)

	// No controller is responsible for this cluster. Both controllers would have seen it by
	// now.
	abandoned := other.cluster("plain")
	view, err := env.Cluster(s.ctx(), other.namespace, "plain")
	s.must(err, "watch the cluster")
	t.Cleanup(view.Close)
	if err := view.Await(s.within(3*time.Second), func(list []*clusterObject) bool {
		return len(list) != 1 || list[0].Status.Phase != ""
	}); err == nil {
		t.Errorf("a controller took a cluster that is not its own:\n%s", describe(abandoned.get()))
	}
	services, err := env.Kube.CoreV1().Services(other.namespace).List(s.ctx(), metav1.ListOptions{LabelSelector: "etcd_cluster=plain"})
	s.must(err, "list services")
	if len(services.Items) != 0 || len(abandoned.members.Pods.List()) != 0 {
		t.Errorf("it has %d services and %d pods", len(services.Items), len(abandoned.members.Pods.List()))
	}
}
