// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
)

// quantile returns the smallest value that is not below the share q of all values.
func quantile[T ~int64 | ~float64](values []T, q float64) T {
	if len(values) == 0 {
		var zero T
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// median returns the middle of the values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread is a median with the lowest and the highest value.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	return spread{median(values), slices.Min(values), slices.Max(values)}
}

// ratios divides the rounds of one series by the same rounds of a second series. A ratio within a
// round has less noise than the ratio of two medians: what else the machine does changes slowly.
func ratios(numerator, denominator []float64) []float64 {
	var out []float64
	for i := range min(len(numerator), len(denominator)) {
		if denominator[i] > 0 {
			out = append(out, numerator[i]/denominator[i])
		}
	}
	return out
}
