// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"strings"
	"testing"
)

func TestFromEnvironment(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	for name, test := range map[string]struct {
		cache, state string
		want         Layout
		fails        bool
	}{
		"defaults":        {want: Layout{Cache: "/home/somebody/.cache/etcd-operator", State: defaultState}},
		"moved":           {cache: "/c/", state: "/s/../t", want: Layout{Cache: "/c", State: "/t"}},
		"relative cache":  {cache: "c", fails: true},
		"relative state":  {state: "s", fails: true},
		"the root":        {state: "/", fails: true},
		"one for both":    {cache: "/a", state: "/a", fails: true},
		"cache in state":  {cache: "/a/b", state: "/a", fails: true},
		"state in cache":  {cache: "/a", state: "/a/b", want: Layout{Cache: "/a", State: "/a/b"}},
		"too long a path": {state: "/" + strings.Repeat("a", 100), fails: true},
	} {
		t.Setenv(CacheEnv, test.cache)
		t.Setenv(StateEnv, test.state)
		got, err := FromEnvironment()
		if (err != nil) != test.fails {
			t.Errorf("%s: error %v", name, err)
		}
		if err == nil && got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
