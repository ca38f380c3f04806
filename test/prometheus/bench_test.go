// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/etcd-operator/etcd-operator/test/prometheus/panels"
	"github.com/etcd-operator/etcd-operator/test/prometheus/recording"
)

// BenchmarkWidestQuery evaluates the query that reads most series of a member: etcd has a series for
// each method and each code of gRPC. The query is that of six hours of a cluster with five members.
// docs/how-to/monitoring.md says why no recording rule does this work before.
func BenchmarkWidestQuery(b *testing.B) {
	const (
		members, methods, codes = 5, 44, 17
		hours                   = 6
		scrape                  = 30 * time.Second
	)
	store := teststorage.New(b)
	appender := store.Appender(b.Context())
	end := time.Now()
	begin := end.Add(-hours * time.Hour)
	for i := range members * methods * codes {
		series := labels.FromStrings("__name__", "grpc_server_handled_total", "namespace", "n", "name", "c",
			"pod", strconv.Itoa(i%members), "grpc_code", strconv.Itoa(i/members%codes), "grpc_method", strconv.Itoa(i/members/codes))
		for at := begin; at.Before(end); at = at.Add(scrape) {
			if _, err := appender.Append(0, series, at.UnixMilli(), at.Sub(begin).Seconds()); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := appender.Commit(); err != nil {
		b.Fatal(err)
	}
	engine := recording.NewEngine(store)
	for b.Loop() {
		matrix, err := engine.QueryRange(b.Context(), `sum by (grpc_code) (rate(grpc_server_handled_total{namespace="n",name="c"}[2m]))`,
			panels.Window{From: begin, To: end}, 30*time.Second)
		if err != nil || len(matrix) != codes {
			b.Fatalf("%d series: %v", len(matrix), err)
		}
	}
}
