// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"io"
	"strings"
	"testing"
)

// TestRedactLog: lines that are too long are left out, and a log of the largest size is not
// whole.
func TestRedactLog(t *testing.T) {
	long := strings.Repeat("x", longestLine+1)
	many := strings.Repeat("a short line\n", mostLogBytes/13+1)
	for name, c := range map[string]struct {
		log, want string
		complete  bool
	}{
		"empty":                  {"", "", true},
		"lines":                  {"one\ntwo\n", "one\ntwo\n", true},
		"no line break at end":   {"one\ntwo", "one\ntwo\n", true},
		"a secret":               {"one\npassword=abc\n", "one\npassword=REDACTED\n", true},
		"a long line":            {"one\n" + long + "\ntwo\n", "one\nREDACTED: this line is longer than 64 KiB\ntwo\n", true},
		"a long line at the end": {"one\n" + long, "one\nREDACTED: this line is longer than 64 KiB\n", true},
		"more than the bound":    {many, many[:mostLogBytes/13*13], false},
	} {
		t.Run(name, func(t *testing.T) {
			got, complete, err := redactLog(io.LimitReader(strings.NewReader(c.log), mostLogBytes))
			if err != nil || complete != c.complete || string(got) != c.want {
				t.Errorf("%v: complete %v, want %v; %d bytes, want %d", err, complete, c.complete, len(got), len(c.want))
			}
		})
	}
}
