// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// colors are the codes that a text may contain. They change nothing but how the text looks.
var colors = []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"}

// Writer writes text to a terminal or to a file that a terminal may show later.
type Writer struct {
	to io.Writer

	mu sync.Mutex
	// part is the beginning of a character whose end the next Write has.
	part []byte
}

// NewWriter returns a writer to to, which it does not close.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write implements io.Writer.
func (w *Writer) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.part, data...) //nolint:gocritic // the part ends here
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if start := len(text) - i; utf8.RuneStart(text[start]) {
			if !utf8.FullRune(text[start:]) {
				whole = start
			}
			break
		}
	}
	w.part = slices.Clone(text[whole:])
	if _, err := io.WriteString(w.to, Text(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Code writes codes of the plugin itself, which no text of others is part of.
func Code(to io.Writer, code string) { fmt.Fprint(Raw(to), code) }

// Raw returns what a Writer writes to; any other writer as it is. It is for bytes that the user wants as they are.
func Raw(to io.Writer) io.Writer {
	if w, ok := to.(*Writer); ok {
		return w.to
	}
	return to
}

// Text returns a text in which control characters, characters that change the direction of a text, and
// bytes that are no characters are shown as Go writes them, such as \x1b. Lines and tabulators stay.
func Text(text string) string {
	if strings.IndexFunc(text, isObeyed) < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch color := colorAt(text[i:]); {
		case color != "":
			b.WriteString(color)
			size = len(color)
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case isObeyed(r) && r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case isObeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

func colorAt(text string) string {
	if i := slices.IndexFunc(colors, func(color string) bool { return strings.HasPrefix(text, color) }); i >= 0 {
		return colors[i]
	}
	return ""
}

// isObeyed is true for what a terminal does not just show. Bytes that are no characters are decoded to RuneError.
func isObeyed(r rune) bool {
	return r == utf8.RuneError || r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
