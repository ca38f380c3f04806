// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"testing"

	"k8s.io/component-base/metrics"
)

func TestMetricsOfStorage(t *testing.T) {
	t.Parallel()
	registry := metrics.NewKubeRegistry()
	server := start(t, t.TempDir())
	if err := registry.CustomRegister(server.Metrics()); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		got[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
	}
	size := got["etcd_operator_apiserver_embedded_storage_size_bytes"]
	room := got["etcd_operator_apiserver_embedded_storage_available_bytes"]
	if size <= 0 || room <= 0 || size+room > float64(server.quota) {
		t.Errorf("the database has %v bytes and may grow by %v; the quota is %d", size, room, server.quota)
	}
}

func TestAvailable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ size, free, want int64 }{
		"the volume is the limit":        {size: 1 << 20, free: 2 << 30, want: 2<<30 - minFree},
		"the quota is the limit":         {size: 7 << 30, free: 100 << 30, want: 1 << 30},
		"the volume is full":             {size: 1 << 20, free: 0, want: 0},
		"the database exceeds the quota": {size: 9 << 30, free: 1 << 30, want: 0},
	} {
		if got := available(test.size, test.free, 8<<30); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
