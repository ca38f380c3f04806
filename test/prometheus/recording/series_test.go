// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestEncode: the parser of promtool reads what encode writes, and short notations are used.
func TestEncode(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]float64{
		"5x2":                 {5, 5, 5},
		"1+2x3":               {1, 3, 5, 7},
		"9-3x3":               {9, 6, 3, 0},
		"1 2":                 {1, 2},
		"0x1 1x1 7":           {0, 0, 1, 1, 7},
		"0.1 0.2 0.3":         {0.1, 0.2, 0.3},
		"0.5x3":               {0.5, 0.5, 0.5, 0.5},
		"_x2 4x2":             {none, none, 4, 4, 4},
		"4x2 stale":           {4, 4, 4, none},
		"4x2 stale _x2 8":     {4, 4, 4, none, none, none, 8},
		"1782123456.789x1":    {1782123456.789, 1782123456.789},
		"0.00001 12345678901": {0.00001, 12345678901},
		"-2x1 -1":             {-2, -2, -1},
	} {
		got := encode(values)
		if got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
		_, parsed, err := parser.NewParser(parser.Options{}).ParseSeriesDesc("m{} " + got)
		if err != nil {
			t.Errorf("%q: %v", got, err)
			continue
		}
		if len(parsed) != len(values) {
			t.Errorf("%q has %d values, want %v", got, len(parsed), values)
			continue
		}
		for i, v := range values {
			isAbsent := parsed[i].Omitted || value.IsStaleNaN(parsed[i].Value)
			if isAbsent != math.IsNaN(v) || !isAbsent && parsed[i].Value != v {
				t.Errorf("value %d of %q is %v, want %v", i, got, parsed[i], v)
			}
		}
	}
}
