// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	var values []time.Duration
	for i := range 100 {
		values = append(values, time.Duration(100-i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
	if got := quantile([]float64{}, 0.5); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
	if values[0] != 100 {
		t.Error("quantile sorts its argument")
	}
}

func TestSpreadIsMedianWithRange(t *testing.T) {
	t.Parallel()
	if got, want := spreadOf([]float64{3, 1, 2, 10}), (spread{2.5, 1, 10}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := spreadOf(nil); !math.IsNaN(got.Median) {
		t.Errorf("the median of nothing is %v", got.Median)
	}
}

func TestRatiosAreOfEqualRounds(t *testing.T) {
	t.Parallel()
	if got, want := ratios([]float64{4, 9, 5}, []float64{2, 3, 0}), []float64{2, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
