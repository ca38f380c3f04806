// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is how many bytes of a text of another program are repeated.
const MaxText = 1 << 10

// cut ends a text that was cut.
const cut = "..."

// Text returns text in at most MaxText bytes and without control characters.
func Text(text string) string { return Within(text, MaxText) }

// Within returns text in at most limit bytes. A space replaces each run of control characters and of
// bytes that are not UTF-8: a terminal may obey the former, and the API rejects the latter.
func Within(text string, limit int) string {
	if len(text) <= limit && isPlain(text) {
		return text
	}
	var b strings.Builder
	spaced := false
	for _, r := range text {
		printable := isPrintable(r)
		if !printable && spaced {
			continue
		}
		if spaced = !printable; spaced {
			r = ' '
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			return b.String()[:whole(b.String(), limit-len(cut))] + cut
		}
		b.WriteRune(r)
	}
	return b.String()
}

// whole returns up to where text holds whole characters, at most limit.
func whole(text string, limit int) int {
	end := min(max(limit, 0), len(text))
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

func isPlain(text string) bool {
	for _, r := range text {
		if !isPrintable(r) {
			return false
		}
	}
	return true
}

// isPrintable is false for control characters, for those that change the direction of a text, and for
// what is not UTF-8.
func isPrintable(r rune) bool {
	return r != utf8.RuneError && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != '\u2028' && r != '\u2029'
}
