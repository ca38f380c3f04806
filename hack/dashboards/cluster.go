// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// cluster shows one cluster and its members.
func cluster() dashboard {
	const half, full = 12, 24
	const of = `{namespace="$namespace",name="$name"}`
	// A pod that was created again has the name and not the address of the pod before it, so it has
	// other series. By its name it has one line.
	byPod := func(metric string) string { return "max by (pod) (" + metric + of + ")" }
	rate := func(metric string) string { return "rate(" + metric + of + "[$__rate_interval])" }
	p99 := func(metric, by string) string {
		return "histogram_quantile(0.99, sum by (" + by + ", le) (" + rate(metric+"_bucket") + "))"
	}
	return dashboard{
		name: "cluster", title: "etcd-operator: cluster",
		variables: []variable{
			{"namespace", "label_values(etcd_operator_cluster_info, namespace)"},
			{"name", `label_values(etcd_operator_cluster_info{namespace="$namespace"}, name)`},
		},
		events: []event{{
			"Changes", `etcd_operator_cluster_condition{namespace="$namespace",name="$name",condition=~"Scaling|Upgrading|Recovering",status="True"} == 1`, "{{condition}}",
		}, {
			"Operations", "etcd_operator_cluster_operation_in_progress" + of + " == 1", "{{type}}",
		}},
		panels: []panel{
			{
				title: "Phase and conditions", kind: stateTimeline, width: full,
				help: "A condition has a row only while its status is not the usual one. Available always has a row.",
				queries: []query{
					{"max by (phase) (etcd_operator_cluster_info" + of + ")", "{{phase}}"},
					{"max by (condition, status) (etcd_operator_cluster_condition" + of + ")", "{{condition}} {{status}}"},
				},
			}, {
				title: "Members and fault tolerance", kind: timeSeries, width: half, unit: "short",
				help: "How many more voters may fail, and how many members serve clients.",
				queries: []query{
					{"max(etcd_operator_cluster_tolerance" + of + ")", "fault tolerance"},
					{"max(etcd_operator_cluster_size" + of + ")", "declared voters"},
					{"max by (state) (etcd_operator_cluster_members" + of + ")", "{{state}}"},
				},
			}, {
				title: "Leader changes and restarts in an hour", kind: timeSeries, width: half, unit: "short",
				help: "Leader changes that a member has seen, and starts of its etcd.",
				queries: []query{
					{"sum by (pod) (increase(etcd_server_leader_changes_seen_total" + of + "[1h]))", "{{pod}} leader changes"},
					{"changes(" + byPod("process_start_time_seconds") + "[1h:15s])", "{{pod}} restarts"},
				},
			}, {
				title: "Database", kind: timeSeries, width: half, unit: "bytes",
				help: "Size of the database file, the part of it in use, and the quota at which etcd rejects writes.",
				queries: []query{
					{byPod("etcd_mvcc_db_total_size_in_bytes"), "{{pod}} size"},
					{byPod("etcd_mvcc_db_total_size_in_use_in_bytes"), "{{pod}} in use"},
					{"max(etcd_server_quota_backend_bytes" + of + ")", "quota"},
				},
			}, {
				title: "Proposals", kind: timeSeries, width: half, unit: "short",
				help: "Writes that were committed or failed in a second, and writes that wait.",
				queries: []query{
					{"max(" + rate("etcd_server_proposals_committed_total") + ")", "committed"},
					{"sum(" + rate("etcd_server_proposals_failed_total") + ")", "failed"},
					{byPod("etcd_server_proposals_pending"), "{{pod}} pending"},
				},
			}, {
				title: "Log write, 99th percentile", kind: timeSeries, width: half, unit: "s",
				help:    "Time to make the log durable. More than 10 ms is slow for etcd.",
				queries: []query{{p99("etcd_disk_wal_fsync_duration_seconds", "pod"), "{{pod}}"}},
			}, {
				title: "Database commit, 99th percentile", kind: timeSeries, width: half, unit: "s",
				help:    "Time for a commit of the database. More than 25 ms is slow for etcd.",
				queries: []query{{p99("etcd_disk_backend_commit_duration_seconds", "pod"), "{{pod}}"}},
			}, {
				title: "Round trip between members, 99th percentile", kind: timeSeries, width: half, unit: "s",
				help:    "Time of a message to another member and back. The second name is the member ID.",
				queries: []query{{p99("etcd_network_peer_round_trip_time_seconds", "pod, To"), "{{pod}} to {{To}}"}},
			}, {
				title: "Slow applies in a second", kind: timeSeries, width: half, unit: "short",
				help:    "Requests that etcd took more than 100 ms to apply.",
				queries: []query{{"sum by (pod) (" + rate("etcd_server_slow_apply_total") + ")", "{{pod}}"}},
			}, {
				title: "Requests of clients by code", kind: timeSeries, width: half, unit: "reqps",
				help:    "gRPC requests that ended in a second. OK is success; Unavailable often means that there is no leader.",
				queries: []query{{"sum by (grpc_code) (" + rate("grpc_server_handled_total") + ")", "{{grpc_code}}"}},
			}, {
				title: "Members with a leader", kind: timeSeries, width: half, unit: "short",
				help:    "1 for a member that knows a leader.",
				queries: []query{{byPod("etcd_server_has_leader"), "{{pod}}"}},
			},
		},
	}
}
