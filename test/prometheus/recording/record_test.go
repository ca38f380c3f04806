// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/etcd-operator/etcd-operator/test/prometheus/panels"
)

var (
	from = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run  = panels.Run{Namespace: "n", Cluster: "c", Whole: panels.Window{From: from, To: from.Add(30 * time.Second)}}
)

// source has series that begin at the start of the run, one sample each ten seconds.
type source map[string][]float64

func (s source) QueryRange(_ context.Context, expr string, _ panels.Window, step time.Duration) (model.Matrix, error) {
	name, _, _ := strings.Cut(expr, "{")
	var matrix model.Matrix
	for le, values := range s {
		stream := &model.SampleStream{Metric: model.Metric{"__name__": model.LabelValue(name), "le": model.LabelValue(le), "pod": "p", "container": "etcd"}}
		for i, v := range values {
			at := from.Add(time.Duration(i) * step)
			stream.Values = append(stream.Values, model.SamplePair{Timestamp: model.TimeFromUnixNano(at.UnixNano()), Value: model.SampleValue(v)})
		}
		matrix = append(matrix, stream)
	}
	return matrix, nil
}

// TestRecordAndLoad: what is recorded and written is what an engine reads again.
func TestRecordAndLoad(t *testing.T) {
	t.Parallel()
	f, err := Record(t.Context(), source{"1": {0, 0, 0}, "+Inf": {0, 5, 10}}, run, []string{"m_bucket"}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{`m_bucket{le="+Inf", pod="p"} 0+5x2 stale`, `m_bucket{le="1", pod="p"} 0x2 stale`}; !reflect.DeepEqual(f.Series, want) {
		t.Errorf("recorded %q, want %q", f.Series, want)
	}
	path := filepath.Join(t.TempDir(), "run.txt")
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	read, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, f) {
		t.Errorf("read %+v, wrote %+v", read, f)
	}
	store := teststorage.New(t)
	if err := read.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	matrix, err := NewEngine(store).QueryRange(t.Context(), `m_bucket{le="+Inf"}`, run.Whole, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	// The series is stale at the fourth step.
	if len(matrix) != 1 || len(matrix[0].Values) != 3 || matrix[0].Values[2].Value != 10 {
		t.Errorf("the engine reads %v, want 0, 5 and 10", matrix)
	}
}

// TestBroadMetrics: series of a broad metric that do not change are left out, but no single bucket.
func TestBroadMetrics(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   source
		want int
	}{
		"one bucket changes": {source{"1": {0, 0}, "+Inf": {0, 5}}, 2},
		"nothing changes":    {source{"1": {7, 7}, "+Inf": {8, 8}}, 0},
	} {
		f, err := Record(t.Context(), c.of, run, []string{"workqueue_queue_duration_seconds_bucket"}, 10*time.Second)
		if err != nil || len(f.Series) != c.want {
			t.Errorf("%s: %q, %v, want %d series", name, f.Series, err, c.want)
		}
	}
}
