// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

const path = "/apis/etcd.database.coreos.com/v1beta2/namespaces/prod/etcdclusters/main"

func TestSteps(t *testing.T) {
	for command, want := range map[string]string{
		"": "",
		"kubectl -n prod logs main-a -c etcd --tail=50":                                                       "kubectl -n prod logs main-a -c etcd --tail=50",
		"kubectl get --raw '" + path + "/members'":                                                            "kubectl get --raw '" + path + "/members'",
		"kubectl get --raw '" + path + "/proxy/snapshot' > main.db":                                           "kubectl etcd snapshot save main main.db -n prod",
		"kubectl get --raw '" + path + "/proxy/snapshot?member=main-a' > main-a.db":                           "kubectl etcd snapshot save main main-a.db --member main-a -n prod",
		"echo '{}' | kubectl create --raw '" + path + "/defrag' -f -":                                         "kubectl etcd defrag main -n prod",
		"echo '{}' | kubectl create --raw '" + path + "/recover?dryRun=All' -f -":                             "kubectl etcd recover main -n prod --dry-run",
		"echo '{}' | kubectl create --raw '" + path + "/restore?dryRun=All' -f -":                             "kubectl etcd restore main -n prod --dry-run",
		`echo '{"spec":{"members":["main-a"]}}' | kubectl create --raw '` + path + `/replace' -f -`:           "kubectl etcd replace main main-a -n prod",
		`echo '{"spec":{"backup":{"name":"x"}}}' | kubectl create --raw '` + path + `/restore' -f -`:          `echo '{"spec":{"backup":{"name":"x"}}}' | kubectl create --raw '` + path + `/restore' -f -`,
		"echo '{}' | kubectl create --raw '/apis/x/defrag' -f -":                                              "echo '{}' | kubectl create --raw '/apis/x/defrag' -f -",
		"kubectl get --raw '" + path + "/proxy/snapshot' > main.db; kubectl get --raw '" + path + "/members'": "kubectl get --raw '" + path + "/proxy/snapshot' > main.db; kubectl get --raw '" + path + "/members'",
	} {
		s := &report.Status{
			Namespace: "prod", Name: "main", Cluster: &v1beta2.EtcdCluster{},
			Health: &v1beta2.EtcdClusterHealth{NextSteps: []v1beta2.NextStep{{Command: command}}},
		}
		if got := report.Steps(s)[0].Command; got != want {
			t.Errorf("%s\nbecame %s\nnot    %s", command, got, want)
		}
		if s.Health.NextSteps[0].Command != command {
			t.Error("the response of the API server was changed")
		}
	}
}

func TestConditions(t *testing.T) {
	for name, c := range map[string]struct {
		set          map[v1beta2.ClusterConditionType]string
		faults, work []v1beta2.ClusterConditionType
	}{
		"all is well": {},
		"a summary is left out if another condition says more": {
			set:    map[v1beta2.ClusterConditionType]string{"Ready": "False", "Degraded": "True", "Reconciling": "True", "Progressing": "True", "Scaling": "True"},
			faults: []v1beta2.ClusterConditionType{"Degraded"}, work: []v1beta2.ClusterConditionType{"Scaling"},
		},
		"a summary alone is shown": {
			set: map[v1beta2.ClusterConditionType]string{"Ready": "False"}, faults: []v1beta2.ClusterConditionType{"Ready"},
		},
		"a condition that is not known is a fault": {
			set: map[v1beta2.ClusterConditionType]string{"CertificatesValid": "Unknown"}, faults: []v1beta2.ClusterConditionType{"CertificatesValid"},
		},
		"a paused cluster": {set: map[v1beta2.ClusterConditionType]string{"Paused": "True"}, faults: []v1beta2.ClusterConditionType{"Paused"}},
		"a lost quorum": {
			set:    map[v1beta2.ClusterConditionType]string{"QuorumLost": "True", "Available": "False", "Degraded": "True", "Stalled": "True", "Ready": "False"},
			faults: []v1beta2.ClusterConditionType{"QuorumLost"},
		},
		"the wait for a quorum is no work": {
			set:    map[v1beta2.ClusterConditionType]string{"QuorumLost": "True", "Reconciling": "True", "Progressing": "True"},
			faults: []v1beta2.ClusterConditionType{"QuorumLost"},
		},
		"a recovery from a lost quorum is work": {
			set:    map[v1beta2.ClusterConditionType]string{"QuorumLost": "True", "Reconciling": "True", "Progressing": "True", "Recovering": "True"},
			faults: []v1beta2.ClusterConditionType{"QuorumLost"}, work: []v1beta2.ClusterConditionType{"Recovering"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := plugintest.Healthy()
			for kind, status := range c.set {
				s.Condition(kind, corev1.ConditionStatus(status), "R", "")
			}
			if got := types(report.Faults(s.Cluster)); !slices.Equal(got, c.faults) {
				t.Errorf("faults %v, want %v", got, c.faults)
			}
			if got := types(report.Work(s.Cluster)); !slices.Equal(got, c.work) {
				t.Errorf("work %v, want %v", got, c.work)
			}
		})
	}
}

func types(list []v1beta2.ClusterCondition) []v1beta2.ClusterConditionType {
	var result []v1beta2.ClusterConditionType
	for _, c := range list {
		result = append(result, c.Type)
	}
	return result
}

func TestMembers(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*v1beta2.MemberHealth, *v1beta2.MemberStatus)
		state, fault string
	}{
		"healthy":     {func(*v1beta2.MemberHealth, *v1beta2.MemberStatus) {}, "healthy", ""},
		"no response": {func(m *v1beta2.MemberHealth, _ *v1beta2.MemberStatus) { m.Responded, m.Error = false, "timeout" }, "no response", "no response: timeout"},
		"no response of a pod that waits": {func(m *v1beta2.MemberHealth, _ *v1beta2.MemberStatus) {
			m.Responded, m.Error, m.Pod.Phase, m.Pod.Message = false, "its pod has no address", corev1.PodPending, "no node fits"
		}, "no response", "no response: its pod has no address (pod Pending: no node fits)"},
		"joining": {func(m *v1beta2.MemberHealth, _ *v1beta2.MemberStatus) {
			m.Responded, m.Role = false, v1beta2.MemberRolePending
		}, "joining", ""},
		"alarm":     {func(m *v1beta2.MemberHealth, _ *v1beta2.MemberStatus) { m.Alarms = []string{"NOSPACE raised by x"} }, "alarm", "alarm NOSPACE raised by x"},
		"no leader": {func(m *v1beta2.MemberHealth, _ *v1beta2.MemberStatus) { m.Leader = "" }, "no leader", "it responds and follows no leader"},
		"not serving": {func(_ *v1beta2.MemberHealth, m *v1beta2.MemberStatus) {
			m.Healthy, m.Message = corev1.ConditionFalse, "its disk hangs"
		}, "not serving", "it responds and does not serve: its disk hangs"},
		"errors": {func(m *v1beta2.MemberHealth, _ *v1beta2.MemberStatus) { m.Errors = []string{"etcdserver: no leader"} }, "error", "it reports: etcdserver: no leader"},
	} {
		t.Run(name, func(t *testing.T) {
			s := plugintest.Healthy()
			c.change(&s.Health.Members[1], &s.Cluster.Status.MemberStatuses[1])
			got := report.Members(&report.Status{Cluster: s.Cluster, Health: s.Health})[1]
			if got.State != c.state || got.Fault != c.fault || got.Healthy != (c.state == "healthy") {
				t.Errorf("got %q, %q, healthy %t", got.State, got.Fault, got.Healthy)
			}
		})
	}
}

// TestWarnings: the newest warnings about the cluster and its members, from both kinds of
// events.
func TestWarnings(t *testing.T) {
	server := plugintest.New(t)
	s := plugintest.Degraded()
	at := func(age time.Duration) time.Time { return plugintest.Now.Add(-age) }
	s.Events.Items = append(s.Events.Items, corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "EtcdBackup", Name: "main-scheduled"}, Type: corev1.EventTypeWarning, Reason: "BackupFailed",
		EventTime: metav1.NewMicroTime(at(time.Hour)), Series: &corev1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(at(time.Second))},
	})
	for range 20 {
		s.Events.Items = append(s.Events.Items, corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "main-a7k2"}, Type: corev1.EventTypeWarning, Reason: "Unhealthy", EventTime: metav1.NewMicroTime(at(2 * time.Minute)),
		})
	}
	server.PutState(s)
	clients, err := server.Clients(nil)
	if err != nil {
		t.Fatal(err)
	}
	why, err := report.ReadWhy(t.Context(), clients, "prod", "main")
	if err != nil {
		t.Fatal(err)
	}
	got := why.Warnings
	if len(got) != 8 || got[0].Object != "etcdbackup/main-scheduled" || got[0].Count != 4 || got[1].Reason != "BackOff" || got[1].Count != 12 || got[2].Count != 1 {
		t.Errorf("unexpected %+v", got)
	}
}
