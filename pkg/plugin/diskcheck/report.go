// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diskcheck

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// RecommendedMilliseconds is what p99 of fdatasync should be below. It is what the FAQ of etcd
// says about wal_fsync_duration_seconds.
const RecommendedMilliseconds = 10

// Report says whether etcd can use a disk.
type Report struct {
	metav1.TypeMeta `json:",inline"`

	// StorageClass of the volume; empty for the default class of Kubernetes.
	StorageClass string `json:"storageClass,omitempty"`
	Node         string `json:"node,omitempty"`
	Size         string `json:"size"`
	// Writes of WriteBytes each, of those that were wanted. A slow disk makes fewer.
	Writes     int `json:"writes"`
	Wanted     int `json:"wanted"`
	WriteBytes int `json:"writeBytes"`
	// TookMilliseconds is how long all of them took.
	TookMilliseconds float64 `json:"tookMilliseconds"`
	// P50, P99 and Max are durations of fdatasync after a write.
	P50Milliseconds float64 `json:"p50Milliseconds"`
	P99Milliseconds float64 `json:"p99Milliseconds"`
	MaxMilliseconds float64 `json:"maxMilliseconds"`
	// RecommendedMilliseconds is what P99 should be below, and FastEnough is true if it is.
	RecommendedMilliseconds float64 `json:"recommendedMilliseconds"`
	FastEnough              bool    `json:"fastEnough"`
}

// NewReport judges a result.
func NewReport(storageClass, size, node string, t *agent.DiskTest) *Report {
	milliseconds := func(microseconds int64) float64 { return float64(microseconds) / 1000 }
	r := &Report{
		TypeMeta:     metav1.TypeMeta{APIVersion: report.APIVersion, Kind: "DiskReport"},
		StorageClass: storageClass, Node: node, Size: size, Writes: t.Writes, Wanted: t.Wanted, WriteBytes: t.WriteBytes,
		TookMilliseconds: milliseconds(t.TookMicroseconds), P50Milliseconds: milliseconds(t.P50Microseconds),
		P99Milliseconds: milliseconds(t.P99Microseconds), MaxMilliseconds: milliseconds(t.MaxMicroseconds),
		RecommendedMilliseconds: RecommendedMilliseconds,
	}
	r.FastEnough = r.P99Milliseconds < RecommendedMilliseconds
	return r
}
