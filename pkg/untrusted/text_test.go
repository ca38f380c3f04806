// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"plain text stays": {"a member, näher", "a member, näher"},
		"a run of control characters becomes a space": {"a\x1b\x00\r\nb\tc", "a b c"},
		"bytes that are not UTF-8 become a space":     {"a\xff\xfeb", "a b"},
		"marks of direction become a space":           {"a\u202eb", "a b"},
		"a text of exactly the limit stays":           {strings.Repeat("a", MaxText), strings.Repeat("a", MaxText)},
		"a longer text is cut":                        {strings.Repeat("a", MaxText+1), strings.Repeat("a", MaxText-3) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Text(test.text); got != test.want {
				t.Errorf("%q becomes %q instead of %q", test.text, got, test.want)
			}
		})
	}
}

func FuzzWithin(f *testing.F) {
	f.Add("a\x1b[31mb", 3)
	f.Add(strings.Repeat("é", 700), 1023)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 3 + max(0, limit)%2048
		got := Within(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || !isPlain(got) {
			t.Errorf("%q within %d becomes %q", text, limit, got)
		}
		if again := Within(got, limit); again != got {
			t.Errorf("%q becomes %q and then %q", text, got, again)
		}
	})
}
