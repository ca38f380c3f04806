// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Release{
		"1.32": Oldest(), "oldest": Oldest(), "1.37": Newest(), "newest": Newest(),
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1.31", "1.37.2", "v1.37", "37"} {
		if got, err := Parse(text); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

// The supported minor versions follow each other, and each is there once.
func TestReleasesAreConsecutive(t *testing.T) {
	want := []string{"1.32", "1.33", "1.34", "1.35", "1.36", "1.37"}
	all := Releases()
	if len(all) != len(want) {
		t.Fatalf("got %v, want one release of each of %v", all, want)
	}
	for i, r := range all {
		if r.Minor() != want[i] {
			t.Errorf("release %d: got %s, want %s", i, r.Minor(), want[i])
		}
	}
}

func TestReleaseInJSON(t *testing.T) {
	raw, err := json.Marshal(Oldest())
	if err != nil || string(raw) != `"1.32"` {
		t.Fatalf("got %s, %v", raw, err)
	}
	var got Release
	if err := json.Unmarshal(raw, &got); err != nil || got != Oldest() {
		t.Errorf("got %v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`"1.31"`), &got); !errors.Is(err, ErrUnsupported) {
		t.Errorf("an unsupported release was read: %v", err)
	}
}
