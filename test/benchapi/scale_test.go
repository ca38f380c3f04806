// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestCompareEvents(t *testing.T) {
	t.Parallel()
	want := []uint64{3, 5, 8, 9}
	for name, c := range map[string]struct {
		read             []uint64
		missed, repeated int
	}{
		"all":          {[]uint64{3, 5, 8, 9}, 0, 0},
		"more at end":  {[]uint64{3, 5, 8, 9, 12}, 0, 0},
		"one missing":  {[]uint64{3, 8, 9}, 1, 0},
		"end missing":  {[]uint64{3, 5}, 2, 0},
		"none":         {nil, 4, 0},
		"repeated":     {[]uint64{3, 5, 5, 8, 9}, 0, 1},
		"out of order": {[]uint64{3, 8, 5, 9}, 1, 1},
	} {
		if missed, repeated := compareEvents(want, c.read); missed != c.missed || repeated != c.repeated {
			t.Errorf("%s: %d missed and %d repeated, want %d and %d", name, missed, repeated, c.missed, c.repeated)
		}
	}
}

func TestVersionOfEvent(t *testing.T) {
	t.Parallel()
	version, err := versionOfEvent([]byte(`{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"17","x":1}}}`))
	if err != nil || version != 17 {
		t.Errorf("version %d, %v", version, err)
	}
	if _, err := versionOfEvent([]byte(`{"type":"ERROR"}`)); err == nil {
		t.Error("an event without a version is accepted")
	}
}

func TestInstalledVariables(t *testing.T) {
	t.Parallel()
	var installed variables
	if err := installed.complete("../.."); err != nil || installed.memoryLimit == "" || len(installed.list()) != 1 {
		t.Errorf("%+v, %v", installed, err)
	}
	given := variables{memoryLimit: "1GiB", gogc: "100"}
	if err := given.complete("../.."); err != nil || !slices.Equal(given.list(), []string{"GOMEMLIMIT=1GiB", "GOGC=100"}) {
		t.Errorf("%v, %v", given.list(), err)
	}
	if _, err := installedVariable("../..", "GONE"); err == nil {
		t.Error("a variable was found that the manifest does not have")
	}
}
