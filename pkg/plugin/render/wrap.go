// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import "strings"

// MaxWidth is how many columns a line has at most on a terminal.
const MaxWidth = 120

// Wrap breaks each line of a text that is wider than a number of columns. What follows a break
// begins with an indent. A command and a word are never broken, so that both can be copied. With
// 0 columns nothing is broken.
func Wrap(text string, columns int, indent string) string {
	if columns <= 0 {
		return text
	}
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		if width(line) <= columns {
			b.WriteString(line)
			continue
		}
		used := 0
		for n, part := range parts(line) {
			size := width(strings.TrimRight(part, " "))
			if n > 0 && used+size > columns && used > width(indent) {
				b.WriteString("\n" + indent)
				used = width(indent)
			}
			b.WriteString(part)
			used += width(part)
		}
	}
	return trimLines(b.String())
}

// parts splits a line behind the spaces at which it may be broken. Spaces at the beginning
// belong to the first part.
func parts(line string) []string {
	var list []string
	part, inCommand := line[:len(line)-len(strings.TrimLeft(line, " "))], false
	for _, word := range strings.SplitAfter(line[len(part):], " ") {
		plain := strings.Trim(word, " ")
		inCommand = inCommand || strings.TrimLeft(plain, "(") == "kubectl"
		part += word
		if inCommand && !strings.ContainsAny(lastByte(plain), ".;,)") {
			continue
		}
		list, part, inCommand = append(list, part), "", false
	}
	if part != "" {
		list = append(list, part)
	}
	return list
}

func lastByte(word string) string {
	if word == "" {
		return ""
	}
	return word[len(word)-1:]
}

// trimLines removes the spaces at the end of each line.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// wrap breaks a text for the output of a style.
func (s Style) wrap(text, indent string) string { return Wrap(text, s.Width, indent) }
