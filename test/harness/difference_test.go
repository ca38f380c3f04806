// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestLost(t *testing.T) {
	t.Parallel()
	const before = `{"spec":{"size":3,"tls":{"auto":{}}},"status":{"size":3,"leader":"a","members":[{"id":"1","leader":"a"}]}}`
	for _, c := range []struct {
		name, after string
		want        []string
	}{
		{"nothing changed", before, nil},
		{"a newer field", `{"spec":{"size":3,"tls":{"auto":{"days":5}}},"status":{"size":3,"new":1,"members":[{"id":"1","new":2}]}}`, nil},
		{"a volatile field changed", `{"spec":{"size":3,"tls":{"auto":{}}},"status":{"size":3,"leader":"b","members":[{"id":"1"}]}}`, nil},
		{
			"fields lost", `{"spec":{"size":3},"status":{"size":3,"members":[{}]}}`,
			[]string{".spec.tls no longer exists; it was map[auto:map[]]", ".status.members[0].id no longer exists; it was 1"},
		},
		{
			"values changed", `{"spec":{"size":"3","tls":"auto"},"status":{"size":5,"members":[]}}`,
			[]string{
				".spec.size is 3; it was 3", ".spec.tls is no object: auto",
				".status.members is []; it was [map[id:1 leader:a]]", ".status.size is 5; it was 3",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var was, now any
			if err := json.Unmarshal([]byte(before), &was); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.after), &now); err != nil {
				t.Fatal(err)
			}
			if got := Lost(was, now, "leader"); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
