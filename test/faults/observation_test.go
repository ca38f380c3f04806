// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"strings"
	"testing"
	"time"
)

// begin is when the clients of the tests below start.
var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func second(n int) time.Time { return begin.Add(time.Duration(n) * time.Second) }

// writes returns an acknowledgement each second, from one second to another.
func writes(from, to int) []time.Time {
	var list []time.Time
	for i := from; i <= to; i++ {
		list = append(list, second(i))
	}
	return list
}

func TestObservation(t *testing.T) {
	paused := append(writes(1, 200), writes(240, 300)...)
	for name, test := range map[string]struct {
		o   observation
		gap time.Duration
		// problems are words of each problem, in order.
		problems []string
	}{
		"writes all the time": {
			o:   observation{from: begin, to: second(300), acknowledged: writes(1, 300), serving: writes(0, 300), gapLimit: 5 * time.Second},
			gap: time.Second,
		},
		"a gap while a quorum is up": {
			o:        observation{from: begin, to: second(300), acknowledged: paused, gapLimit: 5 * time.Second},
			gap:      40 * time.Second,
			problems: []string{"for 40s from 3m20s"},
		},
		"a gap while the quorum is lost": {
			o:   observation{from: begin, to: second(300), acknowledged: paused},
			gap: 40 * time.Second,
		},
		"the status says in the gap that the cluster serves": {
			o:        observation{from: begin, to: second(300), acknowledged: paused, serving: writes(0, 300)},
			gap:      40 * time.Second,
			problems: []string{"3m59s after the start, when no write had been acknowledged for 39s"},
		},
		"the status stops saying so in time": {
			o:   observation{from: begin, to: second(300), acknowledged: paused, serving: append(writes(0, 229), writes(241, 300)...)},
			gap: 40 * time.Second,
		},
		"no write at the end": {
			o:        observation{from: begin, to: second(300), acknowledged: writes(1, 260), gapLimit: 20 * time.Second, serving: writes(0, 280)},
			gap:      40 * time.Second,
			problems: []string{"for 40s from 4m20s"},
		},
		"no write at all": {
			o:        observation{from: begin, to: second(40), serving: writes(0, 40)},
			gap:      40 * time.Second,
			problems: []string{"only 0 writes", "for 40s"},
		},
		"a write that ends after the clients were stopped": {
			o:   observation{from: begin, to: second(250), acknowledged: append(writes(1, 249), second(252)), gapLimit: 5 * time.Second},
			gap: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if gap, _ := test.o.longestGap(); gap != test.gap {
				t.Errorf("the longest gap is %v, not %v", gap, test.gap)
			}
			problems := test.o.problems()
			if len(problems) != len(test.problems) {
				t.Fatalf("the problems are %q, not %q", problems, test.problems)
			}
			for i, words := range test.problems {
				if !strings.Contains(problems[i], words) {
					t.Errorf("problem %q does not say %q", problems[i], words)
				}
			}
		})
	}
}

func TestTolerates(t *testing.T) {
	for _, test := range []struct {
		size, down int
		tolerates  bool
	}{{3, 0, true}, {3, 1, true}, {3, 2, false}, {5, 2, true}, {5, 3, false}, {1, 1, false}} {
		if got := tolerates(test.size, test.down); got != test.tolerates {
			t.Errorf("%d of %d down: %v", test.down, test.size, got)
		}
	}
}
