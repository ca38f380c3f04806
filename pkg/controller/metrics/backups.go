// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
)

// Series are bounded: by the kinds of stores and the known reasons, and by the clusters
// that exist. Nothing has a series for each backup.
var (
	attempts = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "etcd_operator",
		Name:           "backup_attempts_total",
		Help:           "Attempts at backups that ended, by kind of store and by reason (Succeeded, or why not).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"storage_type", "reason"})

	backupDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      "etcd_operator",
		Name:           "backup_duration_seconds",
		Help:           "How long good backups took, from the making of the Job to the end of the agent, by kind of store.",
		Buckets:        metrics.ExponentialBuckets(1, 2, 14),
		StabilityLevel: metrics.ALPHA,
	}, []string{"storage_type"})

	lastSuccess = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      "etcd_operator",
		Name:           "backup_last_success_timestamp_seconds",
		Help:           "When the newest good backup of a cluster was made, in seconds since the epoch.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace", "cluster"})

	lastSize = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      "etcd_operator",
		Name:           "backup_last_size_bytes",
		Help:           "Size of the newest good snapshot of a cluster, as etcd sent it.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace", "cluster"})

	healthy = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      "etcd_operator",
		Name:           "backup_healthy",
		Help:           "1 if the periodic backups of a cluster are made when they are due, 0 if not; absent for a cluster without.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace", "cluster"})
)

// knownReasons bounds the label: reasons of Kubernetes are open-ended. Those of Kubernetes here are
// what its kubelet, scheduler and API for evictions write to pods that they end.
var knownReasons = sets.New(
	planner.ReasonNotStarted, planner.ReasonJobLost, planner.ReasonNodeLost, job.ReasonAgentFailed, job.ReasonPodFailed,
	batchv1.JobReasonDeadlineExceeded, "OOMKilled", "Evicted", "EvictionByEvictionAPI", "DeletionByTaintManager",
	corev1.PodReasonPreemptionByScheduler, corev1.PodReasonTerminationByKubelet,
	string(agent.ClassRequest), string(agent.ClassEtcd), string(agent.ClassEtcdDenied), string(agent.ClassCredentials),
	string(agent.ClassStoreDenied), string(agent.ClassNoBucket), string(agent.ClassNotFound), string(agent.ClassExists), string(agent.ClassStore),
	string(agent.ClassStalled), string(agent.ClassTooSlow), string(agent.ClassCorrupt), string(agent.ClassUnsupported), string(agent.ClassNoSpace),
	string(agent.ClassCanceled), string(agent.ClassInternal),
)

// reasonLabel returns the value of the label for a reason of an attempt that failed.
func reasonLabel(reason string) string {
	if knownReasons.Has(reason) {
		return reason
	}
	return "Other"
}

// ObserveBackupAttempt counts an attempt at a backup that ended.
func ObserveBackupAttempt(storage v1beta2.BackupStorageType, o *planner.Outcome) {
	reason := "Succeeded"
	if o.Succeeded {
		backupDuration.WithLabelValues(string(storage)).Observe(o.Completion.Sub(o.Start).Seconds())
	} else {
		reason = reasonLabel(o.Reason)
	}
	attempts.WithLabelValues(string(storage), reason).Inc()
}

// ObserveClusterBackups sets the series of the backups of a cluster.
func ObserveClusterBackups(key types.NamespacedName, last *v1beta2.LastBackup, size int64, health *v1beta2.ClusterCondition) {
	labels := map[string]string{"namespace": key.Namespace, "cluster": key.Name}
	if last != nil {
		lastSuccess.With(labels).Set(float64(last.Time.Unix()))
	}
	if size > 0 {
		lastSize.With(labels).Set(float64(size))
	}
	switch {
	case health == nil:
		healthy.Delete(labels)
	case health.Status == "False":
		healthy.With(labels).Set(0)
	default:
		healthy.With(labels).Set(1)
	}
}

// ForgetClusterBackups drops the series of the backups of a cluster.
func ForgetClusterBackups(key types.NamespacedName) {
	labels := map[string]string{"namespace": key.Namespace, "cluster": key.Name}
	lastSuccess.Delete(labels)
	lastSize.Delete(labels)
	healthy.Delete(labels)
}
