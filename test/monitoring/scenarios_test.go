// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

// scenario is how one alert begins to fire and resolves. Its series are at rest for an hour,
// then bad for two hours, then at rest again.
type scenario struct {
	alert  string
	series []series
	// at is the minute at which the alert fires; 0 means the end of the bad hours.
	at int
	// labels of the alert, except its name and its severity.
	labels map[string]string
	// summary as a reader gets it.
	summary string
	// alsoHibernated: the alert fires for hibernated clusters, too, or is not about one cluster.
	alsoHibernated bool
}

// series has a value at rest and a bad one: a number, +NUMBER for a counter that rises by it each minute,
// or none while the series does not exist.
type series struct{ name, rest, bad string }

const none = "none"

// Labels of series and alerts.
const (
	ofCluster   = `{namespace="n",name="c"}`
	ofMember    = `{namespace="n",name="c",pod="c-1"}`
	ofOther     = `{namespace="n",name="other",pod="other-1"}`
	ofAPIServer = `{namespace="etcd-operator-system",pod="a"}`
)

var (
	cluster   = map[string]string{"namespace": "n", "name": "c"}
	member    = with("pod", "c-1")
	apiserver = map[string]string{"namespace": "etcd-operator-system", "pod": "a"}
)

// with returns the labels of the cluster and more.
func with(more ...string) map[string]string {
	labels := map[string]string{"namespace": "n", "name": "c"}
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

func condition(name, status string) string {
	return `etcd_operator_cluster_condition{namespace="n",name="c",condition="` + name + `",status="` + status + `"}`
}

// slowDisk is a histogram. At rest all observations are below the first bound; in the bad hours
// they are between the last two bounds.
func slowDisk(name, fast, slow, slower string) []series {
	bucket := func(le, rest, bad string) series {
		return series{name + `_bucket{namespace="n",name="c",pod="c-1",le="` + le + `"}`, rest, bad}
	}
	return []series{bucket(fast, "+100", "+0"), bucket(slow, "+100", "+0"), bucket(slower, "+100", "+100"), bucket("+Inf", "+100", "+100")}
}

const (
	blockedSince    = `etcd_operator_cluster_blocked_since_timestamp_seconds{namespace="n",name="c",reason="QuorumAtRisk"}`
	notAfter        = `etcd_operator_certificate_not_after_timestamp_seconds{namespace="n",cluster="c",use="Peer"}`
	hasBackups      = `etcd_operator_backup_healthy{namespace="n",cluster="c"}`
	lastBackup      = "etcd_operator_cluster_last_backup_timestamp_seconds" + ofCluster
	databaseSize    = "etcd_mvcc_db_total_size_in_bytes" + ofMember
	databaseInUse   = "etcd_mvcc_db_total_size_in_use_in_bytes" + ofMember
	quota           = "etcd_server_quota_backend_bytes" + ofMember
	readyMembers    = `etcd_operator_cluster_members{namespace="n",name="c",state="ready"}`
	storageSize     = "etcd_operator_apiserver_embedded_storage_size_bytes" + ofAPIServer
	storageFree     = "etcd_operator_apiserver_embedded_storage_available_bytes" + ofAPIServer
	leads           = "etcd_operator_leader"
	metricsOfMember = "etcd_server_has_leader"
)

var scenarios = []scenario{
	{alert: "EtcdClusterQuorumLost", series: []series{{condition("QuorumLost", "True"), none, "1"}},
		labels: with("condition", "QuorumLost", "status", "True"), summary: "etcd cluster n/c has lost its quorum"},
	{alert: "EtcdClusterNotAvailable", series: []series{{condition("Available", "False"), none, "1"}},
		labels: with("condition", "Available", "status", "False"), summary: "etcd cluster n/c is not available"},
	{alert: "EtcdClusterToleratesNoFailure",
		series: []series{{"etcd_operator_cluster_tolerance" + ofCluster, "1", "0"}, {"etcd_operator_cluster_size" + ofCluster, "3", "3"}},
		labels: cluster, summary: "etcd cluster n/c would lose its quorum with one more member"},
	{alert: "EtcdClusterMemberNotReady", series: []series{{`etcd_operator_cluster_members{namespace="n",name="c",state="unready"}`, "0", "1"}},
		labels: with("state", "unready"), summary: "1 members of etcd cluster n/c do not serve"},
	{alert: "EtcdClusterBlocked", series: []series{{blockedSince, none, "3600"}},
		labels: with("reason", "QuorumAtRisk"), summary: "the controller waits for QuorumAtRisk before it goes on with etcd cluster n/c"},
	{alert: "EtcdClusterRecoveryStuck", series: []series{{`etcd_operator_cluster_recovery_in_progress{namespace="n",name="c",phase="Filling",trigger="Request"}`, none, "1"}},
		labels: with("phase", "Filling"), summary: "the recovery of etcd cluster n/c is at Filling and does not get on"},
	{alert: "EtcdClusterRecoveryAbandoned", at: 100,
		series: []series{
			{`etcd_operator_cluster_last_recovery_timestamp_seconds{namespace="n",name="c",outcome="Abandoned"}`, none, "3600"},
			{condition("Available", "False"), none, "1"},
		},
		labels: with("outcome", "Abandoned"), summary: "a recovery of etcd cluster n/c was abandoned, and the cluster does not serve"},
	{alert: "EtcdClusterRecovered", at: 100, alsoHibernated: true,
		series: []series{{`etcd_operator_cluster_last_recovery_timestamp_seconds{namespace="n",name="c",outcome="Succeeded"}`, none, "3600"}},
		labels: with("outcome", "Succeeded"), summary: "etcd cluster n/c was recovered from a surviving member or a backup"},
	{alert: "EtcdClusterLeaderChangesOften", series: []series{{"etcd_operator_cluster_leader_changes_total" + ofCluster, "+0", "+0.2"}},
		labels: cluster, summary: "etcd cluster n/c has changed its leader 12 times in an hour"},
	{alert: "EtcdClusterNoSpace", series: []series{{`etcd_operator_cluster_alarm{namespace="n",name="c",alarm="NOSPACE"}`, none, "1"}},
		labels: with("alarm", "NOSPACE"), summary: "etcd cluster n/c rejects writes: a database is full"},
	{alert: "EtcdClusterCorrupt", series: []series{{`etcd_operator_cluster_alarm{namespace="n",name="c",alarm="CORRUPT"}`, none, "1"}},
		labels: with("alarm", "CORRUPT"), summary: "the members of etcd cluster n/c have different data"},
	{alert: "EtcdClusterVolumeGrowthRejected", series: []series{{"etcd_operator_cluster_volume_growth_rejected" + ofCluster, none, "1"}},
		labels: cluster, summary: "Kubernetes rejects larger volumes for etcd cluster n/c"},
	{alert: "EtcdClusterBackupUnhealthy", series: []series{{condition("BackupHealthy", "False"), none, "1"}},
		labels: with("condition", "BackupHealthy", "status", "False"), summary: "the periodic backups of etcd cluster n/c fail"},
	{alert: "EtcdClusterBackupAge", series: []series{{lastBackup, "0", "-763500"}, {hasBackups, "1", "1"}},
		labels: cluster, summary: "the newest backup of etcd cluster n/c is 8d 23h 0m 0s old"},
	{alert: "EtcdClusterCertificateExpiry", series: []series{{notAfter, "5184000", "874500"}},
		labels: with("cluster", "c", "use", "Peer"), summary: "a certificate of etcd cluster n/c expires in 10d 0h 0m 0s"},
	{alert: "EtcdClusterCertificateExpired", series: []series{{notAfter, "5184000", "3600"}},
		labels: with("cluster", "c", "use", "Peer"), summary: "a certificate of etcd cluster n/c has expired"},
	{alert: "EtcdClusterMissing", alsoHibernated: true, series: []series{{`etcd_operator_pvcs_without_cluster{namespace="n"}`, none, "3"}},
		labels: map[string]string{"namespace": "n"}, summary: "3 PVCs of namespace n belong to EtcdClusters that do not exist"},
	{alert: "EtcdClusterDatabaseNearQuota", series: []series{{databaseSize, "50", "85"}, {quota, "100", "100"}},
		labels: cluster, summary: "a database of etcd cluster n/c has 85% of its quota"},
	{alert: "EtcdClusterDatabaseAlmostFull", series: []series{{databaseSize, "50", "97"}, {quota, "100", "100"}},
		labels: cluster, summary: "a database of etcd cluster n/c has 97% of its quota"},
	{alert: "EtcdClusterFragmentationHigh", series: []series{{databaseSize, "1000000000", "1000000000"}, {databaseInUse, "600000000", "250000000"}},
		labels: cluster, summary: "75% of a database of etcd cluster n/c is unused"},
	{alert: "EtcdClusterFsyncSlow", series: slowDisk("etcd_disk_wal_fsync_duration_seconds", "0.001", "0.008", "0.016"),
		labels: member, summary: "member c-1 of etcd cluster n/c writes its log slowly: 15.92ms in the 99th percentile"},
	{alert: "EtcdClusterCommitSlow", series: slowDisk("etcd_disk_backend_commit_duration_seconds", "0.001", "0.032", "0.064"),
		labels: member, summary: "member c-1 of etcd cluster n/c commits to its database slowly: 63.68ms in the 99th percentile"},
	{alert: "EtcdClusterMetricsAbsent",
		series: []series{{readyMembers, "3", "3"}, {metricsOfMember + ofMember, "1", none}, {metricsOfMember + ofOther, "1", "1"}},
		labels: with("state", "ready"), summary: "Prometheus has no metrics of the members of etcd cluster n/c"},
	{alert: "EtcdOperatorHasNoLeader", alsoHibernated: true, series: []series{{leads, "1", "0"}},
		labels: map[string]string{}, summary: "no controller of etcd clusters acts"},
	{alert: "EtcdOperatorMetricsAbsent", alsoHibernated: true, series: []series{{leads, "1", none}},
		labels: map[string]string{}, summary: "Prometheus has no metrics of the controller of etcd clusters"},
	{alert: "EtcdOperatorReconcileFails", alsoHibernated: true,
		series: []series{{`etcd_operator_reconcile_duration_seconds_count{kind="EtcdCluster",outcome="error"}`, "+1", "+30"}},
		labels: map[string]string{"kind": "EtcdCluster"}, summary: "reconciling EtcdCluster fails again and again"},
	{alert: "EtcdOperatorAPIServerDown", alsoHibernated: true,
		series: []series{{`aggregator_unavailable_apiservice{name="v1beta2.etcd.database.coreos.com"}`, "0", "1"}},
		labels: map[string]string{}, summary: "the API server of etcd clusters does not respond"},
	{alert: "EtcdOperatorAPIServerDown", alsoHibernated: true,
		series: []series{{`up{job="etcd-operator-system/etcd-operator-apiserver",pod="a"}`, "1", "0"}, {`up{job="etcd-operator-system/etcd-operator-apiserver",pod="b"}`, "1", "0"}},
		labels: map[string]string{}, summary: "the API server of etcd clusters does not respond"},
	{alert: "EtcdOperatorEmbeddedStorageFilling", alsoHibernated: true, series: []series{{storageSize, "100", "1800"}, {storageFree, "1900", "200"}},
		labels: apiserver, summary: "the storage of the API server of etcd clusters has 10% left"},
	{alert: "EtcdOperatorStorageFull", alsoHibernated: true,
		series: []series{{`apiserver_request_total{job="etcd-operator-system/etcd-operator-apiserver",group="etcd.database.coreos.com",code="507"}`, "+0", "+5"}},
		labels: map[string]string{}, summary: "the storage of the API servers of etcd clusters is full"},
	{alert: "EtcdOperatorStorageCALost", alsoHibernated: true, series: []series{{`etcd_operator_storage_restart_before_timestamp_seconds{pod="a"}`, "0", "1767225600"}},
		labels: map[string]string{}, summary: "the CA of the storage of etcd clusters was lost, and its members and the API servers must restart before 2026-01-01 00:00:00 +0000 UTC"},
	{alert: "EtcdOperatorLeaseNotObeyed", alsoHibernated: true, series: []series{{"etcd_operator_leases_not_obeyed", "0", "1"}},
		labels: map[string]string{}, summary: "1 leases in other namespaces are for the etcd clusters of this controller"},
}

// harmless are states in which no alert fires, although they resemble those above.
var harmless = map[string][]series{
	"one of two API servers restarts": {
		{`up{job="etcd-operator-system/etcd-operator-apiserver",pod="a"}`, "1", "0"}, {`up{job="etcd-operator-system/etcd-operator-apiserver",pod="b"}`, "1", "1"},
	},
	"the API server serves and Prometheus may not read its metrics": {
		{`up{job="etcd-operator-system/etcd-operator-apiserver",pod="a"}`, "0", "0"}, {`aggregator_unavailable_apiservice{name="v1beta2.etcd.database.coreos.com"}`, "0", "0"},
	},
	"one backup was made long ago and none is scheduled": {{lastBackup, "-763080", "-763080"}},
	"a small database is mostly unused":                  {{databaseSize, "20000000", "20000000"}, {databaseInUse, "1000000", "1000000"}},
	"a database has no quota":                            {{databaseSize, "100", "100"}, {quota, "0", "0"}},
	"another etcd has a slow disk": {
		{`etcd_disk_wal_fsync_duration_seconds_bucket{job="etcd",le="1"}`, "+0", "+0"}, {`etcd_disk_wal_fsync_duration_seconds_bucket{job="etcd",le="+Inf"}`, "+9", "+9"},
	},
	"no member is scraped":                            {{readyMembers, "3", "3"}},
	"a cluster of one member tolerates no failure":    {{"etcd_operator_cluster_tolerance" + ofCluster, "0", "0"}, {"etcd_operator_cluster_size" + ofCluster, "1", "1"}},
	"a controller is not the leader and another is":   {{leads + `{pod="b"}`, "0", "0"}},
	"the members of etcd 3.2 have no port of metrics": {{`etcd_operator_cluster_info{namespace="n",name="old",phase="Running",version="3.2.32"}`, "1", "1"}, {`etcd_operator_cluster_members{namespace="n",name="old",state="ready"}`, "3", "3"}, {metricsOfMember + ofOther, "1", "1"}},
}
