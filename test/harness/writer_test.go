// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"
	"time"
)

// TestLongestGap: a writer that was stopped waits for the response to its last write and
// writes nothing meanwhile. That is no gap.
func TestLongestGap(t *testing.T) {
	begun := time.Now()
	after := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	for name, test := range map[string]struct {
		acknowledged []int // milliseconds after the begin; the writer is stopped after 100
		want         time.Duration
	}{
		"between two":                         {[]int{10, 70, 90}, 60 * time.Millisecond},
		"from the last success until the end": {[]int{10, 20}, 80 * time.Millisecond},
		"from the begin":                      {nil, 100 * time.Millisecond},
		"a response after the end":            {[]int{40, 80, 2080}, 40 * time.Millisecond},
		"only that one":                       {[]int{2080}, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Writer{lastOK: begun, stopped: after(100)}
			for _, ms := range test.acknowledged {
				w.acknowledge(after(ms))
			}
			w.acknowledge(w.stopped)
			if w.report.LongestGap != test.want {
				t.Errorf("the longest gap is %v, want %v", w.report.LongestGap, test.want)
			}
		})
	}
}
