// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"testing"
	"time"
)

// TestNewest: which backup is restored of several. Every row is tried in both orders.
func TestNewest(t *testing.T) {
	t.Parallel()
	at := func(hours int) time.Time { return time.Date(2026, 11, 1, hours, 0, 0, 0, time.UTC) }
	sure := func(hours int, revision int64) Candidate { return Candidate{At: at(hours), Revision: revision} }
	doubtful := func(hours int, revision int64) Candidate {
		return Candidate{At: at(hours), Revision: revision, Doubtful: true, Unconfirmed: true}
	}
	differs := func(c Candidate) Candidate {
		c.DataDiffers = true
		return c
	}
	of := func(lineage string, c Candidate) Candidate {
		c.Lineage = lineage
		return c
	}
	ordered := func(lineage string, c Candidate) Candidate {
		c.Lineage, c.Ordered = lineage, true
		return c
	}
	for name, test := range map[string]struct {
		backups []Candidate
		want    int
	}{
		"none":                                   {nil, -1},
		"the newest":                             {[]Candidate{sure(1, 9), sure(3, 5), sure(2, 7)}, 1},
		"a late one of a member without quorum":  {[]Candidate{sure(1, 9), doubtful(3, 5)}, 0},
		"with the same writes":                   {[]Candidate{sure(1, 9), doubtful(3, 9)}, 0},
		"with more writes":                       {[]Candidate{sure(1, 9), doubtful(3, 10)}, 1},
		"of other data":                          {[]Candidate{of("a", sure(1, 9)), of("b", doubtful(3, 5))}, 1},
		"only doubtful ones":                     {[]Candidate{doubtful(1, 9), doubtful(3, 5)}, 0},
		"doubtful ones of other data":            {[]Candidate{of("a", doubtful(1, 9)), of("b", doubtful(3, 5))}, 1},
		"doubtful ones with the same writes":     {[]Candidate{doubtful(1, 9), doubtful(2, 9), doubtful(3, 5)}, 1},
		"a newest one that nothing verified":     {[]Candidate{doubtful(1, 9), {At: at(3), Revision: 5, Doubtful: true}}, 1},
		"the newest of the sure ones":            {[]Candidate{sure(1, 9), doubtful(4, 5), sure(2, 9)}, 2},
		"an old doubtful one":                    {[]Candidate{doubtful(1, 10), sure(2, 9)}, 1},
		"an early one of a clock that was ahead": {[]Candidate{ordered("a", sure(3, 5)), ordered("a", sure(1, 9)), ordered("a", sure(2, 7))}, 1},
		"that clock, before a restore":           {[]Candidate{ordered("b", sure(3, 5)), ordered("a", sure(1, 9))}, 0},
		"that clock, and more without quorum":    {[]Candidate{ordered("a", sure(3, 5)), ordered("a", doubtful(1, 9))}, 0},
		"one whose time is unknown":              {[]Candidate{{Revision: 9}, sure(2, 5)}, 1},
		"a late one whose data differs":          {[]Candidate{sure(1, 5), sure(2, 7), differs(sure(3, 9))}, 1},
		"that, and only a doubtful one":          {[]Candidate{differs(sure(3, 9)), doubtful(1, 5)}, 1},
		"that, and only one of other data":       {[]Candidate{of("b", differs(sure(3, 9))), of("a", sure(1, 5))}, 1},
		"only ones whose data differs":           {[]Candidate{differs(sure(1, 9)), differs(sure(3, 9)), differs(doubtful(4, 5))}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Newest(test.backups); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
			slices.Reverse(test.backups)
			if got := Newest(test.backups); got != len(test.backups)-1-test.want && test.want >= 0 {
				t.Errorf("in the other order: got %d", got)
			}
		})
	}
}

// TestStoredCandidate: a clock of a node that is wrong makes a backup neither newer nor older than the other clocks allow.
func TestStoredCandidate(t *testing.T) {
	t.Parallel()
	at := func(hours int) time.Time { return time.Date(2026, 11, 1, hours, 0, 0, 0, time.UTC) }
	for name, test := range map[string]struct{ started, finished, modified, want time.Time }{
		"clocks that agree":              {at(3), at(4), at(4), at(4)},
		"a node that is ahead":           {at(3), at(9), at(4), at(4)},
		"a node that is behind":          {at(3), at(1), at(4), at(3)},
		"a Kubernetes that was ahead":    {at(9), at(4), at(4), at(4)},
		"no time of the store":           {at(3), at(4), time.Time{}, at(4)},
		"a manifest of an older program": {time.Time{}, at(4), at(4), at(4)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Stored{Manifest: &Manifest{StartedAt: test.started, FinishedAt: test.finished}, Modified: test.modified}
			if got := s.AsCandidate().At; !got.Equal(test.want) {
				t.Errorf("made at %s, want %s", got, test.want)
			}
		})
	}
}
