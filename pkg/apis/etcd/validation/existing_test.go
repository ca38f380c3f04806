// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestBootstrapExisting(t *testing.T) {
	existing := func(fields string) string { return "bootstrap: {existing: {" + fields + "}}" }
	const (
		at     = "spec.bootstrap.existing"
		plain  = "clientEndpoints: ['http://a:2379', 'http://b:2379']"
		secure = "clientEndpoints: ['https://a:2379'], tlsSecret: client"
		static = ", TLS: {static: {operatorSecret: o, member: {serverSecret: s, peerSecret: p}}}"
	)
	runClusterCases(t, []specCase{
		{"http endpoints", "{" + existing(plain) + "}", nil},
		{"the removal of old members", "{" + existing(plain+", oldMembers: Remove") + "}", nil},
		{"https endpoints with certificates of the same CA", "{" + existing(secure) + static + "}", nil},
		{"no etcd", "bootstrap: {}", []string{"Required " + at}},
		{"no endpoint", existing("clientEndpoints: []"), []string{"Required " + at + ".clientEndpoints"}},
		{"no URL", existing("clientEndpoints: ['a:2379']"), []string{"Invalid " + at + ".clientEndpoints[0]"}},
		{"no port", existing("clientEndpoints: ['http://a']"), []string{"Invalid " + at + ".clientEndpoints[0]"}},
		{"a password", existing("clientEndpoints: ['http://me:secret@a:2379']"), []string{"Forbidden " + at + ".clientEndpoints[0]"}},
		{"the same endpoint twice", existing("clientEndpoints: ['http://a:2379', 'http://a:2379']"), []string{"Duplicate " + at + ".clientEndpoints[1]"}},
		{"two schemes", "{" + existing("clientEndpoints: ['https://a:2379', 'http://b:2379'], tlsSecret: s") + static + "}", []string{"Invalid " + at + ".clientEndpoints[1]"}},
		{"something else with old members", existing(plain + ", oldMembers: Delete"), []string{"NotSupported " + at + ".oldMembers"}},
		{"a Secret for http", existing(plain + ", tlsSecret: s"), []string{"Forbidden " + at + ".tlsSecret"}},
		{"a wrong Secret name", "{" + existing("clientEndpoints: ['https://a:2379'], tlsSecret: A_B") + static + "}", []string{"Invalid " + at + ".tlsSecret"}},
		{"https without a Secret", "{" + existing("clientEndpoints: ['https://a:2379']") + static + "}", []string{"Required " + at + ".tlsSecret"}},
		{"https without TLS", existing(secure), []string{"Required spec.TLS.static"}},
		{"https with another CA", "{" + existing(secure) + ", TLS: {auto: {}}}", []string{"Required spec.TLS.static"}},
		{"http with TLS", "{" + existing(plain) + ", TLS: {auto: {}}}", []string{"Forbidden spec.TLS"}},
		{"size 0", "{size: 0, pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}, " + existing(plain) + "}", []string{"Invalid spec.size"}},
		{"too many endpoints", existing(fmt.Sprintf("clientEndpoints: [%s]", many(17))), []string{"TooMany " + at + ".clientEndpoints"}},
	})
	const volumes = "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
	runClusterCases(t, []specCase{
		{"PVCs that are taken back", "{" + volumes + ", bootstrap: {fromVolumes: {}}}", nil},
		{"PVCs that are taken back by a cluster of size 0", "{size: 0, " + volumes + ", bootstrap: {fromVolumes: {}}}", nil},
		{"PVCs that are taken back without volumes", "bootstrap: {fromVolumes: {}}", []string{"Required spec.pod.persistentVolumeClaimSpec"}},
		{"PVCs and a running etcd", "{" + volumes + ", bootstrap: {fromVolumes: {}, existing: {" + plain + "}}}", []string{"Forbidden spec.bootstrap.fromVolumes"}},
	})
	filled := cluster(t, existing(plain))
	filled.Annotations = map[string]string{v1beta2.AnnotationRestore: "r"}
	expect(t, ValidateEtcdCluster(filled), "Forbidden "+at)
	expect(t, ValidateEtcdRestore(restore(t, "{etcdCluster: {name: c}, backup: {name: b}, clusterTemplate: {spec: {size: 3, "+existing(plain)+"}}}")),
		"Forbidden spec.clusterTemplate.spec.bootstrap")
}

func many(n int) string {
	list := ""
	for i := range n {
		list += fmt.Sprintf("'http://m%d:2379',", i)
	}
	return list
}

func TestBootstrapChange(t *testing.T) {
	const (
		at      = "spec.bootstrap.existing"
		keep    = "bootstrap: {existing: {clientEndpoints: ['http://a:2379']}}"
		other   = "bootstrap: {existing: {clientEndpoints: ['http://b:2379']}}"
		remove  = "bootstrap: {existing: {clientEndpoints: ['http://a:2379'], oldMembers: Remove}}"
		back    = "bootstrap: {fromVolumes: {}}"
		volumes = "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
	)
	old, own := v1beta2.MemberStatus{Name: "x", Unmanaged: true}, v1beta2.MemberStatus{Name: "example-a"}
	creating := v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseCreating, MemberStatuses: []v1beta2.MemberStatus{old}}
	joining := v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning, MemberStatuses: []v1beta2.MemberStatus{own, old}}
	over := v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning, MemberStatuses: []v1beta2.MemberStatus{own}}
	for _, c := range []struct {
		name, from, to string
		status         v1beta2.ClusterStatus
		want           []string
	}{
		{"added to a cluster that exists", "", keep, over, []string{"Forbidden " + at}},
		{"endpoints corrected before anything joins", keep, other, creating, nil},
		{"endpoints corrected before a controller sees the cluster", keep, other, v1beta2.ClusterStatus{}, nil},
		{"endpoints changed while members join", keep, other, joining, []string{"Forbidden " + at + ".clientEndpoints"}},
		{"removal requested", keep, remove, joining, nil},
		{"removal taken back", remove, keep, joining, nil},
		{"removal taken back afterwards", remove, keep, over, []string{"Forbidden " + at + ".oldMembers"}},
		{"removed before the cluster has begun", keep, "", creating, nil},
		{"removed before a controller sees the cluster", keep, "", v1beta2.ClusterStatus{}, nil},
		{"PVCs taken back in place of a running etcd", "{" + volumes + ", " + keep + "}", "{" + volumes + ", " + back + "}", creating, nil},
		{"PVCs taken back in place of an etcd that members join", "{" + volumes + ", " + keep + "}", "{" + volumes + ", " + back + "}", joining, []string{"Forbidden spec.bootstrap.fromVolumes"}},
		{"removed beside old members", keep, "", joining, []string{"Forbidden " + at}},
		{"removed while no member is known", keep, "", v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning}, []string{"Forbidden " + at}},
		{"removed when no old member is left", remove, "", over, nil},
		{"PVCs taken back by a cluster that waits", "{" + volumes + "}", "{" + volumes + ", " + back + "}", v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseCreating}, nil},
		{"PVCs taken back by a cluster that has begun", "{" + volumes + "}", "{" + volumes + ", " + back + "}", over, []string{"Forbidden spec.bootstrap.fromVolumes"}},
		{"the request for PVCs stays", "{" + volumes + ", " + back + "}", "{" + volumes + ", " + back + "}", over, nil},
		{"the request for PVCs is removed before", "{" + volumes + ", " + back + "}", "{" + volumes + "}", v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseCreating}, nil},
		{"the request for PVCs is removed afterwards", "{" + volumes + ", " + back + "}", "{" + volumes + "}", over, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := cluster(t, c.from)
			before.Status = c.status
			expect(t, ValidateEtcdClusterUpdate(cluster(t, c.to), before), c.want...)
		})
	}
	secret := func(name string) *v1beta2.EtcdCluster {
		c := cluster(t, "{bootstrap: {existing: {clientEndpoints: ['https://a:2379'], tlsSecret: "+name+"}}, TLS: {static: {operatorSecret: o, member: {serverSecret: s, peerSecret: p}}}}")
		c.Status = joining
		return c
	}
	expect(t, ValidateEtcdClusterUpdate(secret("b"), secret("a")), "Forbidden "+at+".tlsSecret")
}
