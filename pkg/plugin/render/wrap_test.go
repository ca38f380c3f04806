// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import "testing"

func TestWrap(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		columns int
		want    string
	}{
		"a short line stays":                 {"one two", 7, "one two"},
		"a long line is broken at a space":   {"  one two three", 9, "  one two\n    three"},
		"without columns nothing is broken":  {"one two three", 0, "one two three"},
		"a word stays whole":                 {"see also https://main.prod.svc:2379", 12, "see also\n    https://main.prod.svc:2379"},
		"a command stays whole":              {"type: kubectl etcd why main; then wait", 16, "type:\n    kubectl etcd why main;\n    then wait"},
		"a command in parentheses":           {"name it (kubectl get x lists them), or set y", 24, "name it\n    (kubectl get x lists them),\n    or set y"},
		"each line is broken on its own":     {"one two\nthree four", 7, "one two\nthree\n    four"},
		"codes of colors have no width":      {"\x1b[31mone two\x1b[0m", 7, "\x1b[31mone two\x1b[0m"},
		"an indent alone is no line":         {"a       bbbbbbbbbbbbbbbbbbbb cc", 8, "a\n    bbbbbbbbbbbbbbbbbbbb\n    cc"},
		"the first word stays on its line":   {"  kubectl etcd why main", 9, "  kubectl etcd why main"},
		"the space at a break is left out":   {"first two", 8, "first\n    two"},
		"an aligned label stays as it is":    {"etcd      3.6.16 to 3.6.18", 20, "etcd      3.6.16 to\n    3.6.18"},
		"a line of spaces stays without end": {"one\n\ntwo", 3, "one\n\ntwo"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Wrap(c.text, c.columns, "    "); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}
