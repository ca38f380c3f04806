// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var errFormat = errors.New("this is not a recording")

// none is the value of a step at which a series has no sample.
var none = math.NaN()

// encode writes values in the notation of promtool: 5x2 is 5 5 5, 1+2x3 is 1 3 5 7, _x2 is two
// steps without a sample. The first step without a sample after one with a sample is stale, as
// where Prometheus no longer finds a series.
func encode(values []float64) string {
	var parts []string
	for i := 0; i < len(values); {
		n := 1
		if math.IsNaN(values[i]) {
			for i+n < len(values) && math.IsNaN(values[i+n]) {
				n++
			}
			gap := n
			if i > 0 {
				parts = append(parts, "stale")
				gap--
			}
			if gap > 0 {
				parts = append(parts, fmt.Sprintf("_x%d", gap))
			}
			i += n
			continue
		}
		slope := 0.0
		if i+1 < len(values) && !math.IsNaN(values[i+1]) {
			slope = values[i+1] - values[i]
		}
		for i+n < len(values) && isOnLine(values[i], slope, n, values[i+n]) {
			n++
		}
		switch {
		case n == 1:
			parts = append(parts, number(values[i]))
		case slope == 0:
			parts = append(parts, fmt.Sprintf("%sx%d", number(values[i]), n-1))
		case n == 2 || slope != math.Trunc(slope):
			// Two values are shorter as they are, and sums of fractions are not exact.
			n = 1
			parts = append(parts, number(values[i]))
		case slope < 0:
			parts = append(parts, fmt.Sprintf("%s-%sx%d", number(values[i]), number(-slope), n-1))
		default:
			parts = append(parts, fmt.Sprintf("%s+%sx%d", number(values[i]), number(slope), n-1))
		}
		i += n
	}
	return strings.Join(parts, " ")
}

func isOnLine(first, slope float64, n int, value float64) bool {
	return first+slope*float64(n) == value
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
