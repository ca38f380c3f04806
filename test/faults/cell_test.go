// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"slices"
	"testing"
)

func TestMatrixHasEachCellOnce(t *testing.T) {
	all := Matrix()
	// Six operations have two sizes, and scaling has one each way.
	if n := len(Faults) * 14; len(all) != n {
		t.Errorf("the matrix has %d cells, not %d", len(all), n)
	}
	seen := map[Cell]bool{}
	for _, c := range all {
		if seen[c] {
			t.Errorf("%s is there twice", c)
		}
		seen[c] = true
		if parsed, err := ParseCell(c.String()); err != nil || parsed != c {
			t.Errorf("%s is read as %s: %v", c, parsed, err)
		}
	}
	for _, c := range Core() {
		if !seen[c] {
			t.Errorf("%s is a core cell, and not in the matrix", c)
		}
	}
}

func TestParseCell(t *testing.T) {
	if c, err := ParseCell("disk-slow/scale-down"); err != nil || c != (Cell{DiskSlow, ScaleDown, 5}) {
		t.Errorf("without a size: %s, %v", c, err)
	}
	for _, text := range []string{"", "disk-slow", "disk-slow/never", "never/steady", "disk-slow/steady/4", "disk-slow/steady/x", "disk-slow/steady/3/1"} {
		if _, err := ParseCell(text); !errors.Is(err, errCell) {
			t.Errorf("%q: the error is %v", text, err)
		}
	}
}

func TestSeedChoosesTheSameCells(t *testing.T) {
	first := Choose(7, 10)
	if again := Choose(7, 10); !slices.Equal(first, again) {
		t.Errorf("seed 7 chose %v, then %v", first, again)
	}
	if other := Choose(8, 10); slices.Equal(first, other) {
		t.Errorf("seeds 7 and 8 both chose %v", first)
	}
	if longer := Choose(7, 20); !slices.Equal(first, longer[:10]) {
		t.Errorf("twenty cells begin with %v, ten are %v", longer[:10], first)
	}
}

func TestChosenCellsRepeatOnlyAfterAllOthers(t *testing.T) {
	all := len(Matrix())
	chosen := Choose(1, all+3)
	if len(chosen) != all+3 {
		t.Fatalf("%d cells were chosen, not %d", len(chosen), all+3)
	}
	seen := map[Cell]bool{}
	for _, c := range chosen[:all] {
		seen[c] = true
	}
	if len(seen) != all {
		t.Errorf("the first %d cells are only %d", all, len(seen))
	}
}

func TestDiceBelongToTheCell(t *testing.T) {
	a, b := Cell{DiskSlow, Steady, 3}, Cell{DiskSlow, Steady, 5}
	if x, y := a.Dice(1).Uint64(), a.Dice(1).Uint64(); x != y {
		t.Errorf("the same cell and seed gave %d and %d", x, y)
	}
	if a.Dice(1).Uint64() == b.Dice(1).Uint64() || a.Dice(1).Uint64() == a.Dice(2).Uint64() {
		t.Error("another cell or another seed gave the same numbers")
	}
}
