// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

// ofEtcd are the metrics of members that alerts and dashboards use, each with its labels.
// etcd 3.3.27, 3.5.35, 3.6.16 and 3.7.3 export all of them. PodMonitors add the labels
// namespace, name and pod.
var ofEtcd = map[string][]string{
	"etcd_disk_backend_commit_duration_seconds": nil,
	"etcd_disk_wal_fsync_duration_seconds":      nil,
	"etcd_mvcc_db_total_size_in_bytes":          nil,
	"etcd_mvcc_db_total_size_in_use_in_bytes":   nil,
	"etcd_network_peer_round_trip_time_seconds": {"To"},
	"etcd_server_has_leader":                    nil,
	"etcd_server_leader_changes_seen_total":     nil,
	"etcd_server_proposals_committed_total":     nil,
	"etcd_server_proposals_failed_total":        nil,
	"etcd_server_proposals_pending":             nil,
	"etcd_server_quota_backend_bytes":           nil,
	"etcd_server_slow_apply_total":              nil,
	"grpc_server_handled_total":                 {"grpc_code", "grpc_method", "grpc_service", "grpc_type"},
	"process_start_time_seconds":                nil,
}

// ofKubernetes are metrics of the libraries of Kubernetes and of Prometheus.
var ofKubernetes = map[string][]string{
	"aggregator_unavailable_apiservice":  {"name"}, // of the kube-apiserver
	"apiserver_request_total":            {"code", "resource", "verb", "group", "subresource"},
	"apiserver_request_duration_seconds": {"resource", "verb", "group", "subresource"},
	"rest_client_requests_total":         {"code", "method"},
	"up":                                 {"job"},
	"workqueue_depth":                    {"name"},
	"workqueue_queue_duration_seconds":   {"name"},
}

// addOthers adds the metrics that the programs of this project do not define.
func addOthers(known map[string][]string) {
	for name, labels := range ofEtcd {
		known[name] = append([]string{"namespace", "name", "pod"}, labels...)
	}
	for name, labels := range ofKubernetes {
		known[name] = append([]string{"namespace", "pod", "job"}, labels...)
	}
}
