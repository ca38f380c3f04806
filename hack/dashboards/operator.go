// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// operator shows the controller and the API server.
func operator() dashboard {
	const half = 12
	const (
		ofController = `{job=~"(.+/)?etcd-operator-controller"}`
		ofAPIServer  = `{job=~"(.+/)?etcd-operator-apiserver"}`
	)
	rate := func(series string) string { return "rate(" + series + "[$__rate_interval])" }
	p99 := func(series, by string) string {
		return "histogram_quantile(0.99, sum by (" + by + ") (" + rate(series) + "))"
	}
	return dashboard{name: "operator", title: "etcd-operator: operator", panels: []panel{
		{
			title: "Reconciles in a second", kind: timeSeries, width: half, unit: "short",
			help:    "Reconciles by kind and outcome. Errors that continue are in the log of the controller.",
			queries: []query{{"sum by (kind, outcome) (" + rate("etcd_operator_reconcile_duration_seconds_count") + ")", "{{kind}} {{outcome}}"}},
		}, {
			title: "Duration of reconciles, 99th percentile", kind: timeSeries, width: half, unit: "s",
			help:    "How long one reconcile takes.",
			queries: []query{{p99("etcd_operator_reconcile_duration_seconds_bucket", "kind, le"), "{{kind}}"}},
		}, {
			title: "Queue", kind: timeSeries, width: half, unit: "short",
			help:    "Objects that wait for a reconcile.",
			queries: []query{{"sum by (name) (workqueue_depth" + ofController + ")", "{{name}}"}},
		}, {
			title: "Time in the queue, 99th percentile", kind: timeSeries, width: half, unit: "s",
			help:    "How long an object waits before its reconcile begins.",
			queries: []query{{p99("workqueue_queue_duration_seconds_bucket"+ofController, "name, le"), "{{name}}"}},
		}, {
			title: "Leaders, and requests of the controller by code", kind: timeSeries, width: half, unit: "short",
			help: "One controller leads. Requests of the controller to the kube-apiserver in a second.",
			queries: []query{
				{"sum(etcd_operator_leader)", "leaders"},
				{"sum by (code) (" + rate("rest_client_requests_total"+ofController) + ")", "{{code}}"},
			},
		}, {
			title: "Backups and restores in an hour", kind: timeSeries, width: half, unit: "short",
			help: "Attempts at backups by reason, and restores by result.",
			queries: []query{
				{"sum by (reason) (increase(etcd_operator_backup_attempts_total[1h]))", "backup {{reason}}"},
				{"sum by (result) (increase(etcd_operator_restores_total[1h]))", "restore {{result}}"},
			},
		}, {
			title: "Requests to the API server by code", kind: timeSeries, width: half, unit: "reqps",
			help:    "Requests for objects of the API server in a second. Codes of 500 and above are failures of the server.",
			queries: []query{{"sum by (code) (" + rate("apiserver_request_total"+ofAPIServer) + ")", "{{code}}"}},
		}, {
			title: "Duration of requests to the API server, 99th percentile", kind: timeSeries, width: half, unit: "s",
			help:    "Duration by verb. Watches last by design and are left out.",
			queries: []query{{p99(`apiserver_request_duration_seconds_bucket{job=~"(.+/)?etcd-operator-apiserver",verb!="WATCH"}`, "verb, le"), "{{verb}}"}},
		}, {
			title: "Probes of members", kind: timeSeries, width: half, unit: "short",
			help: "What the API server asks members for /health and /members: responses in a second by outcome, and probes that run.",
			queries: []query{
				{"sum by (outcome) (" + rate("etcd_operator_apiserver_probe_member_responses_total") + ")", "{{outcome}}"},
				{"sum(etcd_operator_apiserver_probes_in_flight)", "in flight"},
			},
		}, {
			title: "Duration of probes, 99th percentile", kind: timeSeries, width: half, unit: "s",
			help:    "How long the API server asks all members of a cluster.",
			queries: []query{{p99("etcd_operator_apiserver_probe_duration_seconds_bucket", "le"), "probes"}},
		}, {
			title: "Embedded storage", kind: timeSeries, width: half, unit: "bytes",
			help: "Size of the database of the API server, and how much it may grow. Empty with an external etcd.",
			queries: []query{
				{"max(etcd_operator_apiserver_embedded_storage_size_bytes)", "size"},
				{"min(etcd_operator_apiserver_embedded_storage_available_bytes)", "available"},
			},
		}, {
			title: "Snapshots that are read through the API server", kind: timeSeries, width: half, unit: "Bps",
			help:    "Bytes in a second that /proxy/snapshot sends.",
			queries: []query{{"sum(" + rate("etcd_operator_apiserver_snapshot_bytes_total") + ")", "bytes"}},
		},
	}}
}
