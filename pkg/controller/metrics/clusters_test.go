// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
)

func measured(name string) *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To(int32(3))},
		Status: v1beta2.ClusterStatus{
			Phase: v1beta2.ClusterPhaseRunning, CurrentVersion: "3.6.16", Leader: name + "-1", Tolerance: ptr.To(int32(0)), DBSize: 4096,
			Members: v1beta2.MembersStatus{Ready: []string{name + "-1", name + "-2"}, Unready: []string{name + "-3"}},
			Conditions: []v1beta2.ClusterCondition{
				{Type: v1beta2.ClusterConditionAvailable, Status: corev1.ConditionTrue},
				{Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionUnknown},
				{Type: "OfAnotherProgram", Status: corev1.ConditionTrue},
			},
			BlockedBy:  &v1beta2.BlockedBy{Reason: "QuorumAtRisk", Since: metav1.NewTime(time.Unix(1000, 0))},
			LastBackup: &v1beta2.LastBackup{Time: metav1.NewTime(time.Unix(2000, 0))},
			Recovery:   &v1beta2.RecoveryStatus{ID: "1", Trigger: v1beta2.RecoveryTriggerRequest, Phase: v1beta2.RecoveryPhaseFilling},
		},
	}
}

// scrape returns the series that a scrape sees, without help and type.
func scrape(t *testing.T, registry metrics.KubeRegistry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			lines = append(lines, fmt.Sprintf("%s{%s} %v", strings.TrimPrefix(family.GetName(), "etcd_operator_cluster_"), strings.Join(labels, ","), value))
		}
	}
	return strings.Join(lines, "\n")
}

func TestCollectorSaysWhatTheStatusSays(t *testing.T) {
	t.Parallel()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	others := measured("others")
	for _, o := range []*v1beta2.EtcdCluster{measured("a"), others} {
		if err := store.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	c := NewClusterCollector(etcdlisters.NewEtcdClusterLister(store), func(o metav1.Object) bool { return o.GetName() != others.Name })
	registry := metrics.NewKubeRegistry()
	if err := registry.CustomRegister(c); err != nil {
		t.Fatal(err)
	}
	moved := measured("a")
	moved.Status.Leader = "a-2"
	leaderless := measured("a")
	leaderless.Status.Leader = ""
	c.updated(measured("a"), moved)
	c.updated(moved, leaderless) // no leader: that is no change of leader yet
	c.updated(leaderless, moved) // the same member leads again
	c.updated(moved, leaderless)
	c.updated(leaderless, measured("a")) // another member leads
	want := `blocked_since_timestamp_seconds{name=a,namespace=n,reason=QuorumAtRisk} 1000
condition{condition=Available,name=a,namespace=n,status=True} 1
condition{condition=QuorumLost,name=a,namespace=n,status=Unknown} 1
db_size_bytes{name=a,namespace=n} 4096
info{name=a,namespace=n,phase=Running,version=3.6.16} 1
last_backup_timestamp_seconds{name=a,namespace=n} 2000
leader_changes_total{name=a,namespace=n} 2
members{name=a,namespace=n,state=ready} 2
members{name=a,namespace=n,state=unready} 1
recovery_in_progress{name=a,namespace=n,phase=Filling,trigger=Request} 1
size{name=a,namespace=n} 3
tolerance{name=a,namespace=n} 0`
	if got := scrape(t, registry); got != want {
		t.Errorf("the series are\n%s\nnot\n%s", got, want)
	}

	if err := store.Delete(moved); err != nil {
		t.Fatal(err)
	}
	c.deleted(cache.DeletedFinalStateUnknown{Key: "n/a", Obj: moved})
	if got := scrape(t, registry); got != "" {
		t.Errorf("the cluster was deleted and its series stay:\n%s", got)
	}
	if len(c.counts) != 0 {
		t.Errorf("counts are kept of deleted clusters: %v", c.counts)
	}
}

// TestCollectorCountsRecoveries: each recovery counts once, when it ends, also if this
// process has not seen it begin.
func TestCollectorCountsRecoveries(t *testing.T) {
	t.Parallel()
	at := func(id string, phase v1beta2.RecoveryPhase) *v1beta2.EtcdCluster {
		o := measured("a")
		o.Status.Recovery = &v1beta2.RecoveryStatus{ID: id, Phase: phase, CompletionTime: ptr.To(metav1.NewTime(time.Unix(3000, 0)))}
		return o
	}
	never := measured("a")
	never.Status.Recovery = nil
	c := NewClusterCollector(nil, nil)
	last := never
	for _, next := range []*v1beta2.EtcdCluster{
		at("1", v1beta2.RecoveryPhasePending), at("1", v1beta2.RecoveryPhaseFilling), at("1", v1beta2.RecoveryPhaseAbandoned),
		at("1", v1beta2.RecoveryPhaseAbandoned), at("2", v1beta2.RecoveryPhaseAbandoned), at("3", v1beta2.RecoveryPhaseCutover),
		at("3", v1beta2.RecoveryPhaseCleaning), at("3", v1beta2.RecoveryPhaseSucceeded), at("3", v1beta2.RecoveryPhaseSucceeded),
	} {
		c.updated(last, next)
		last = next
	}
	if got, want := c.seen(last), (counts{recovered: 1, abandoned: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := store.Add(last); err != nil {
		t.Fatal(err)
	}
	c.clusters, c.responsible = etcdlisters.NewEtcdClusterLister(store), func(metav1.Object) bool { return true }
	registry := metrics.NewKubeRegistry()
	if err := registry.CustomRegister(c); err != nil {
		t.Fatal(err)
	}
	series := scrape(t, registry)
	for _, want := range []string{
		"last_recovery_timestamp_seconds{name=a,namespace=n,outcome=Succeeded} 3000",
		"recoveries_total{name=a,namespace=n,outcome=Abandoned} 2", "recoveries_total{name=a,namespace=n,outcome=Succeeded} 1",
	} {
		if !strings.Contains(series, want) {
			t.Errorf("%s is missing in\n%s", want, series)
		}
	}
	if strings.Contains(series, "recovery_in_progress") {
		t.Errorf("a recovery that is over is in progress:\n%s", series)
	}
}

// TestAlarmsAndRejectedGrowth: these series exist only while something is wrong.
func TestAlarmsAndRejectedGrowth(t *testing.T) {
	t.Parallel()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	c := NewClusterCollector(etcdlisters.NewEtcdClusterLister(store), func(metav1.Object) bool { return true })
	registry := metrics.NewKubeRegistry()
	if err := registry.CustomRegister(c); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		alarms []string
		reason string
		want   []string
	}{
		"at rest":                  {},
		"a database is full":       {alarms: []string{"NOSPACE (raised by 8e9e05c52164694d)"}, want: []string{"alarm{alarm=NOSPACE,name=a,namespace=n} 1"}},
		"the data differs":         {alarms: []string{"CORRUPT (raised by 8e9e05c52164694d)"}, want: []string{"alarm{alarm=CORRUPT,name=a,namespace=n} 1"}},
		"an alarm is not known":    {alarms: []string{"OTHER (raised by 8e9e05c52164694d)"}},
		"Kubernetes rejects a PVC": {reason: v1beta2.ReasonGrowthRejected, want: []string{"volume_growth_rejected{name=a,namespace=n} 1"}},
		"a PVC grows":              {reason: "Growing"},
	} {
		o := measured("a")
		o.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "a-1", Alarms: test.alarms}, {Name: "a-2", Alarms: test.alarms}}
		if test.reason != "" {
			o.Status.Conditions = append(o.Status.Conditions, v1beta2.ClusterCondition{
				Type: v1beta2.ClusterConditionVolumesAsDeclared, Status: corev1.ConditionFalse, Reason: test.reason,
			})
		}
		if err := store.Update(o); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(scrape(t, registry)) {
			if strings.HasPrefix(line, "alarm{") || strings.HasPrefix(line, "volume_growth_rejected{") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the series are %q, want %q", name, got, test.want)
		}
	}
}

// TestOperationIsMeasured: an operation has a series until it is over.
func TestOperationIsMeasured(t *testing.T) {
	t.Parallel()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	registry := metrics.NewKubeRegistry()
	if err := registry.CustomRegister(NewClusterCollector(etcdlisters.NewEtcdClusterLister(store), func(metav1.Object) bool { return true })); err != nil {
		t.Fatal(err)
	}
	for phase, want := range map[v1beta2.OperationPhase]bool{
		v1beta2.OperationPending: true, v1beta2.OperationRunning: true, v1beta2.OperationSucceeded: false, v1beta2.OperationFailed: false,
	} {
		for _, kind := range append([]v1beta2.OperationType{"Unknown"}, operations...) {
			o := measured("a")
			o.Status.Operation = &v1beta2.ClusterOperation{Type: kind, Phase: phase}
			if err := store.Update(o); err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprintf("operation_in_progress{name=a,namespace=n,type=%s} 1", kind)
			if got := strings.Contains(scrape(t, registry), line); got != (want && kind != "Unknown") {
				t.Errorf("operation %s in phase %s: it has a series: %v", kind, phase, got)
			}
		}
	}
}

// TestSeriesOfACluster: times the number of clusters, this is what Prometheus has to keep.
func TestSeriesOfACluster(t *testing.T) {
	t.Parallel()
	rests := measured("rests")
	rests.Status.BlockedBy, rests.Status.Recovery = nil, nil
	rests.Status.Conditions = nil
	for _, kind := range withSeries {
		rests.Status.Conditions = append(rests.Status.Conditions, v1beta2.ClusterCondition{Type: kind, Status: v1beta2.UsualStatus(string(kind))})
	}
	// Everything is wrong at once, and seven members have certificates of their own.
	worst := measured("worst")
	worst.Status.Operation = &v1beta2.ClusterOperation{Type: v1beta2.OperationDefrag, Phase: v1beta2.OperationRunning}
	worst.Status.Conditions = nil
	for _, kind := range withSeries {
		c := v1beta2.ClusterCondition{Type: kind, Status: corev1.ConditionUnknown}
		if kind == v1beta2.ClusterConditionVolumesAsDeclared {
			c.Status, c.Reason = corev1.ConditionFalse, v1beta2.ReasonGrowthRejected
		}
		worst.Status.Conditions = append(worst.Status.Conditions, c)
	}
	for i := range 7 {
		worst.Status.Members.Unready = append(worst.Status.Members.Unready, fmt.Sprint(i))
		worst.Status.MemberStatuses = append(worst.Status.MemberStatuses, v1beta2.MemberStatus{Name: fmt.Sprint(i), Alarms: []string{"NOSPACE (raised by 1)", "CORRUPT (raised by 2)", "OTHER"}})
	}
	for cluster, most := range map[*v1beta2.EtcdCluster]int{rests: 9, worst: 28} {
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		if err := store.Add(cluster); err != nil {
			t.Fatal(err)
		}
		c := NewClusterCollector(etcdlisters.NewEtcdClusterLister(store), func(metav1.Object) bool { return true })
		c.counts[cluster.UID] = &counts{leaders: 1}
		if cluster == worst {
			c.counts[cluster.UID] = &counts{leaders: 1, recovered: 1, abandoned: 1}
		}
		registry := metrics.NewKubeRegistry()
		if err := registry.CustomRegister(c); err != nil {
			t.Fatal(err)
		}
		series := scrape(t, registry)
		if got := strings.Count(series, "\n") + 1; got != most {
			t.Errorf("cluster %s has %d series, not %d:\n%s", cluster.Name, got, most, series)
		}
	}
}
