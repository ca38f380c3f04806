// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bringback

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSuperseded: only copies that a program has made are removed, and none while a clock may have named them wrongly.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	const oldest, older, newest = "etcd-before-20251231-235959", "etcd-before-20260101-000000", "etcd-before-20261129-000000"
	now := time.Date(2026, 11, 30, 12, 0, 0, 5e8, time.UTC)
	for name, test := range map[string]struct{ directories, want []string }{
		"no copy":                   {[]string{"etcd", "etcd-restored", "etcd-moved"}, nil},
		"one copy":                  {[]string{"etcd", newest}, nil},
		"two copies":                {[]string{newest, older}, []string{older}},
		"three copies":              {[]string{older, newest, oldest}, []string{oldest, older}},
		"copies of today":           {[]string{oldest, older, "etcd-before-20261130-110000", "etcd-before-20261130-110100", "etcd-before-20261129-130000"}, []string{oldest, older}},
		"names of others":           {[]string{newest, "etcd-before-upgrade", "etcd-before-20260101", "etcd-before-20261301-000000", "etcd-before-20260101-000000.bak", "etcd-before-20260101-000000.5", "old-etcd-before-20260101-000000", "etcd-moved-before-20260101-000000"}, nil},
		"a copy of another data":    {[]string{newest, "data-before-20260101-000000"}, nil},
		"a copy of the future":      {[]string{newest, older, oldest, "etcd-before-20270101-000000"}, nil},
		"a copy of the same second": {[]string{newest, older, oldest, "etcd-before-20261130-120000"}, nil},
	} {
		if got := superseded(test.directories, "etcd", now); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestSwapInKeepsTwoCopies: replacing data again and again does not fill the volume. A file with the name of a copy stays.
func TestSwapInKeepsTwoCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, restored := filepath.Join(dir, "etcd"), filepath.Join(dir, "etcd-restored")
	if err := os.WriteFile(filepath.Join(dir, "etcd-before-20260101-000000"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for i := range 5 {
		for _, part := range []string{restored, filepath.Join(restored, "member")} {
			if err := os.Mkdir(part, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := SwapIn(restored, data, start.Add(time.Duration(i)*keptTime)); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := []string{"etcd", "etcd-before-20260101-000000", "etcd-before-20261203-120000", "etcd-before-20261204-120000"}; !slices.Equal(names, want) {
		t.Errorf("the volume has %v, want %v", names, want)
	}
}
