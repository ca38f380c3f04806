// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// fleet shows all clusters, those that need work first.
func fleet() dashboard {
	const third, half = 8, 12
	return dashboard{name: "fleet", title: "etcd-operator: fleet", panels: []panel{
		{
			title: "Clusters that do not serve", kind: table, width: third,
			help:    "Clusters without a quorum, or with data that differs. Hibernated clusters are left out.",
			queries: []query{{expr: `etcd_operator_cluster_condition{condition="Available",status!="True"} == 1 unless on (namespace, name) etcd_operator_cluster_info{phase="Hibernated"}`}},
		}, {
			title: "Clusters that tolerate no failure", kind: table, width: third,
			help:    "How many more voters may fail. Below 0 the quorum is lost. Clusters of one member are always here.",
			queries: []query{{expr: `etcd_operator_cluster_tolerance <= 0`}},
		}, {
			title: "Clusters that wait", kind: table, width: third, unit: "s",
			help:    "For how long the controller has waited for the reason. status.blockedBy says what to do.",
			queries: []query{{expr: `sort_desc(time() - etcd_operator_cluster_blocked_since_timestamp_seconds)`}},
		}, {
			title: "Clusters by phase", kind: timeSeries, width: half, unit: "short",
			help:    "How many clusters are in each phase. A cluster that was just created has none.",
			queries: []query{{`count by (phase) (etcd_operator_cluster_info{phase!=""})`, "{{phase}}"}},
		}, {
			title: "Clusters by version", kind: timeSeries, width: half, unit: "short",
			help:    "How many clusters have each version of etcd. During an upgrade the lowest version of a member counts. A cluster that has not started has none.",
			queries: []query{{`count by (version) (etcd_operator_cluster_info{version!=""})`, "{{version}}"}},
		}, {
			title: "Oldest backups", kind: table, width: third, unit: "s",
			help:    "Age of the newest good backup of a cluster. Clusters that never had a backup have no row.",
			queries: []query{{expr: `topk(20, time() - etcd_operator_cluster_last_backup_timestamp_seconds)`}},
		}, {
			title: "Backups that fail", kind: table, width: third,
			help:    "Clusters whose periodic backups fail or are overdue.",
			queries: []query{{expr: `etcd_operator_cluster_condition{condition="BackupHealthy",status="False"} == 1`}},
		}, {
			title: "Certificates that expire first", kind: table, width: third, unit: "s",
			help:    "Time until the first certificate of a cluster expires.",
			queries: []query{{expr: `bottomk(20, etcd_operator_certificate_not_after_timestamp_seconds - time())`}},
		},
	}}
}
