// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

func TestCompareHistory(t *testing.T) {
	t.Parallel()
	a, b, c := seenEvent{watch.Added, "u", "3"}, seenEvent{watch.Modified, "u", "5"}, seenEvent{watch.Deleted, "u", "9"}
	written := []acknowledged{{"u", "3"}, {"u", "5"}}
	for name, test := range map[string]struct {
		events []seenEvent
		want   int
	}{
		"complete history is right":            {[]seenEvent{a, b, c}, 0},
		"history without its end is right":     {[]seenEvent{a, b}, 0},
		"missed event is found":                {[]seenEvent{a, c}, 2},
		"repeated event is found":              {[]seenEvent{a, a, b, c}, 2},
		"missed unacknowledged event is found": {[]seenEvent{a, b, {watch.Deleted, "u", "10"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := compareHistory("it", test.events, written, []seenEvent{a, b, c}); len(got) != test.want {
				t.Errorf("got %q, want %d problems", got, test.want)
			}
		})
	}
}
