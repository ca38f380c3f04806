// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
)

// ClusterCollector exports the statuses of the clusters to Prometheus. It computes its
// series from the cache at each scrape, so a deleted cluster leaves none behind.
// TestSeriesOfACluster counts the series of a cluster.
type ClusterCollector struct {
	metrics.BaseStableCollector

	clusters    etcdlisters.EtcdClusterLister
	responsible func(metav1.Object) bool

	mu sync.Mutex
	// counts holds what was seen to happen, by the UID of the cluster.
	counts map[types.UID]*counts
}

// counts is what was seen to happen to one cluster: the changes of its leader, and its
// recoveries by outcome. A cluster has no leader for a moment during an election: lastLeader is
// the leader before, so that the change counts when the next member leads.
type counts struct {
	leaders, recovered, abandoned int
	lastLeader                    string
}

// NewClusterCollector returns a collector of the clusters that responsible is true for.
func NewClusterCollector(clusters etcdlisters.EtcdClusterLister, responsible func(metav1.Object) bool) *ClusterCollector {
	return &ClusterCollector{clusters: clusters, responsible: responsible, counts: map[types.UID]*counts{}}
}

// Count makes the collector count what an informer of clusters shows.
func (c *ClusterCollector) Count(informer cache.SharedIndexInformer) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: c.updated,
		DeleteFunc: c.deleted,
	})
	if err != nil {
		return fmt.Errorf("count what happens to clusters: %w", err)
	}
	return nil
}

func (c *ClusterCollector) updated(before, after any) {
	was, known := before.(*v1beta2.EtcdCluster)
	is, ok := after.(*v1beta2.EtcdCluster)
	if !known || !ok || was.UID != is.UID {
		return
	}
	var seen counts
	if was.Status.Leader != is.Status.Leader {
		seen.lastLeader = cmp.Or(is.Status.Leader, was.Status.Leader)
	}
	if r, last := is.Status.Recovery, was.Status.Recovery; r != nil && (last == nil || last.ID != r.ID || last.Phase != r.Phase) {
		switch r.Phase {
		case v1beta2.RecoveryPhaseSucceeded:
			seen.recovered = 1
		case v1beta2.RecoveryPhaseAbandoned:
			seen.abandoned = 1
		case v1beta2.RecoveryPhasePending, v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryPhaseCutover, v1beta2.RecoveryPhaseCleaning:
		}
	}
	if seen == (counts{}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.counts[is.UID]
	if sum == nil {
		sum = &counts{}
		c.counts[is.UID] = sum
	}
	if before := cmp.Or(was.Status.Leader, sum.lastLeader); is.Status.Leader != "" && before != "" && before != is.Status.Leader {
		sum.leaders++
	}
	sum.lastLeader = cmp.Or(seen.lastLeader, sum.lastLeader)
	sum.recovered += seen.recovered
	sum.abandoned += seen.abandoned
}

func (c *ClusterCollector) deleted(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if gone, ok := object.(*v1beta2.EtcdCluster); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.counts, gone.UID)
	}
}

func (c *ClusterCollector) seen(cluster *v1beta2.EtcdCluster) counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sum := c.counts[cluster.UID]; sum != nil {
		return *sum
	}
	return counts{}
}

// series is one metric of a cluster, with its labels other than namespace and name. emit
// calls add for each value.
type series struct {
	desc *metrics.Desc
	kind metrics.ValueType
	emit func(c *ClusterCollector, o *v1beta2.EtcdCluster, add func(value float64, labels ...string))
}

func gauge(name, help string, emit func(*ClusterCollector, *v1beta2.EtcdCluster, func(float64, ...string)), more ...string) series {
	return series{desc: describe(name, help, more), kind: metrics.GaugeValue, emit: emit}
}

func counter(name, help string, emit func(*ClusterCollector, *v1beta2.EtcdCluster, func(float64, ...string)), more ...string) series {
	return series{desc: describe(name, help, more), kind: metrics.CounterValue, emit: emit}
}

func describe(name, help string, more []string) *metrics.Desc {
	return metrics.NewDesc("etcd_operator_cluster_"+name, help, append([]string{"namespace", "name"}, more...), nil, metrics.ALPHA, "")
}

var allSeries = []series{
	gauge("info", "1 for each cluster; its phase and the lowest version that a member runs.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			add(1, string(o.Status.Phase), o.Status.CurrentVersion)
		}, "phase", "version"),
	gauge("size", "How many voting members are declared.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			if o.Spec.Replicas != nil {
				add(float64(*o.Spec.Replicas))
			}
		}),
	gauge("members", "How many members there are, by whether they serve clients.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			add(float64(len(o.Status.Members.Ready)), "ready")
			add(float64(len(o.Status.Members.Unready)), "unready")
		}, "state"),
	gauge("tolerance", "How many more voters may fail before the quorum is lost; negative if it is, absent while it is not known.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			if o.Status.Tolerance != nil {
				add(float64(*o.Status.Tolerance))
			}
		}),
	gauge("db_size_bytes", "Size of the largest database file of a member.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			add(float64(o.Status.DBSize))
		}),
	gauge("condition", "1 for the status that a condition of the cluster has now. Conditions but Available have a series only while their status is not the usual one.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			for _, condition := range telling(o.Status.Conditions) {
				add(1, string(condition.Type), string(condition.Status))
			}
		}, "condition", "status"),
	gauge("alarm", "1 for each alarm that etcd has raised, NOSPACE or CORRUPT; absent without one.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			for _, alarm := range alarms {
				if hasAlarm(o, alarm) {
					add(1, alarm)
				}
			}
		}, "alarm"),
	gauge("volume_growth_rejected", "1 while Kubernetes rejects the growth of a PVC of the cluster; absent otherwise.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			if slices.ContainsFunc(o.Status.Conditions, growthRejected) {
				add(1)
			}
		}),
	gauge("operation_in_progress", "1 while a defragmentation, a restart or a replacement is in progress; absent otherwise.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			if op := o.Status.Operation; !op.IsOver() && slices.Contains(operations, op.Type) {
				add(1, string(op.Type))
			}
		}, "type"),
	gauge("blocked_since_timestamp_seconds", "Since when the controller waits for something before it can go on, and for what; absent if it does not wait.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			if b := o.Status.BlockedBy; b != nil {
				add(float64(b.Since.Unix()), b.Reason)
			}
		}, "reason"),
	gauge("last_backup_timestamp_seconds", "When the newest good backup of the cluster was complete; absent if there is none.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			if b := o.Status.LastBackup; b != nil && !b.Time.IsZero() {
				add(float64(b.Time.Unix()))
			}
		}),
	gauge("recovery_in_progress", "1 while the data of the cluster goes on in new members, by why and by how far that is; absent otherwise.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			if r := o.Status.Recovery; r.IsInProgress() {
				add(1, string(r.Trigger), string(r.Phase))
			}
		}, "trigger", "phase"),
	gauge("last_recovery_timestamp_seconds", "When the last recovery was over, and what it came to; absent if there was none.",
		func(_ *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			if r := o.Status.Recovery; r != nil && !r.IsInProgress() && r.CompletionTime != nil {
				add(float64(r.CompletionTime.Unix()), string(r.Phase))
			}
		}, "outcome"),
	counter("leader_changes_total", "Changes of leader that the status has shown since this process began to act.",
		func(c *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			add(float64(c.seen(o).leaders))
		}),
	counter("recoveries_total", "Recoveries that have ended since this process began to act, by what they came to; absent before the first.",
		func(c *ClusterCollector, o *v1beta2.EtcdCluster, add func(float64, ...string)) {
			seen := c.seen(o)
			if seen.recovered > 0 {
				add(float64(seen.recovered), string(v1beta2.RecoveryPhaseSucceeded))
			}
			if seen.abandoned > 0 {
				add(float64(seen.abandoned), string(v1beta2.RecoveryPhaseAbandoned))
			}
		}, "outcome"),
}

// alarms are the alarms of etcd that can have a series: a status may contain other texts.
var alarms = []string{"NOSPACE", "CORRUPT"}

// operations are the types of operations that can have a series.
var operations = []v1beta2.OperationType{v1beta2.OperationDefrag, v1beta2.OperationRestart, v1beta2.OperationReplace}

// hasAlarm is true if a member reports an alarm. The status adds to an alarm which member raised it.
func hasAlarm(o *v1beta2.EtcdCluster, alarm string) bool {
	return slices.ContainsFunc(o.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool {
		return slices.ContainsFunc(m.Alarms, func(text string) bool { return strings.HasPrefix(text, alarm) })
	})
}

func growthRejected(c v1beta2.ClusterCondition) bool {
	return c.Type == v1beta2.ClusterConditionVolumesAsDeclared && c.Status == corev1.ConditionFalse && c.Reason == v1beta2.ReasonGrowthRejected
}

// withSeries are the conditions that can have a series. A status may contain other conditions: without
// this list, every client that may write a status could create series without end.
var withSeries = []v1beta2.ClusterConditionType{
	v1beta2.ClusterConditionAvailable, v1beta2.ClusterConditionProgressing, v1beta2.ClusterConditionDegraded, v1beta2.ClusterConditionQuorumLost,
	v1beta2.ClusterConditionScaling, v1beta2.ClusterConditionUpgrading, v1beta2.ClusterConditionRecovering, v1beta2.ClusterConditionPaused,
	v1beta2.ClusterConditionBackupHealthy, v1beta2.ClusterConditionCertificatesValid, v1beta2.ClusterConditionVolumesAsDeclared,
	v1beta2.ClusterConditionServiceAsDeclared,
}

// telling returns the conditions that have a series now, each once: ten thousand clusters
// at rest are no news. Available always has one.
func telling(conditions []v1beta2.ClusterCondition) []v1beta2.ClusterCondition {
	var list []v1beta2.ClusterCondition
	for _, kind := range withSeries {
		i := slices.IndexFunc(conditions, func(c v1beta2.ClusterCondition) bool { return c.Type == kind })
		if i < 0 || conditions[i].Status == v1beta2.UsualStatus(string(kind)) && kind != v1beta2.ClusterConditionAvailable {
			continue
		}
		switch conditions[i].Status {
		case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
			list = append(list, conditions[i])
		}
	}
	return list
}

// DescribeWithStability implements metrics.StableCollector.
func (c *ClusterCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, s := range allSeries {
		ch <- s.desc
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *ClusterCollector) CollectWithStability(ch chan<- metrics.Metric) {
	list, err := c.clusters.List(labels.Everything())
	if err != nil {
		return // A lister reads from memory: it has no errors to give.
	}
	for _, o := range list {
		if !c.responsible(o) {
			continue
		}
		for _, s := range allSeries {
			s.emit(c, o, func(value float64, labels ...string) {
				for i := range labels {
					labels[i] = strings.ToValidUTF8(labels[i], "?")
				}
				ch <- metrics.NewLazyConstMetric(s.desc, s.kind, value, append([]string{o.Namespace, o.Name}, labels...)...)
			})
		}
	}
}
