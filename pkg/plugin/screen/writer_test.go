// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"fmt"
	"testing"
)

func TestWriter(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"lines, tabulators and letters", "a\tb\nnäher ✔\n", "a\tb\nnäher ✔\n"},
		{"the title of the terminal", "\x1b]0;owned\x07", `\x1b]0;owned\x07`},
		{"the line before", "all well\r\x1b[2Kgone", `all well\x0d\x1b[2Kgone`},
		{"one byte that begins a code", "\u009b2J and \x9b2J", `\u009b2J and \x9b2J`},
		{"the direction of the text", "a\u202eb", `a\u202eb`},
		{"colors", "\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"},
		{"hidden letters", "\x1b[8mred", `\x1b[8mred`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			fmt.Fprint(NewWriter(&out), test.text)
			if out.String() != test.want {
				t.Errorf("got %q, want %q", out.String(), test.want)
			}
		})
	}
}

// TestWriterInParts: a character may come in two writes.
func TestWriterInParts(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, part := range [][]byte{[]byte("n\xc3"), []byte("\xa4her \xe2\x9c"), []byte("\x94\n")} {
		if n, err := w.Write(part); n != len(part) || err != nil {
			t.Errorf("%d %v", n, err)
		}
	}
	if out.String() != "näher ✔\n" {
		t.Errorf("got %q", out.String())
	}
	Code(w, "\x1b[H")
	if Code(&out, "\r"); out.String() != "näher ✔\n\x1b[H\r" || Raw(w) != &out {
		t.Errorf("got %q", out.String())
	}
}
