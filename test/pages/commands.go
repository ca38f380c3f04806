// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"regexp"
	"strings"
)

// Placeholders are the words that stand for a value of the reader in commands, and the names of
// the variables that have the value in a test.
func Placeholders() []string { return []string{"NS", "NAME", "MEMBER", "NODE"} }

var (
	placeholder = regexp.MustCompile(`\b(?:` + strings.Join(Placeholders(), "|") + `)\b`)
	// asks finds the commands that ask for the name of the cluster. Pages show them without --yes.
	asks = regexp.MustCompile(`\bkubectl etcd (?:restore|recover) `)
)

// Fill returns commands that a test can run. Words that stand for values become these values, and
// so does the namespace default. Commands that ask for the name of the cluster get --yes.
func Fill(commands string, values map[string]string) string {
	var filled strings.Builder
	last := 0
	for _, at := range placeholder.FindAllStringIndex(commands, -1) {
		value := values[commands[at[0]:at[1]]]
		if value == "" || isVariable(commands, at) {
			continue
		}
		filled.WriteString(commands[last:at[0]] + value)
		last = at[1]
	}
	filled.WriteString(commands[last:])
	text := filled.String()
	if ns := values["NS"]; ns != "" {
		text = strings.ReplaceAll(text, "NS=default", "NS="+ns)
	}
	return asks.ReplaceAllString(text, "${0}--yes ")
}

// isVariable is true for the name of a variable that is read or gets a value, and for the name of a
// custom column.
func isVariable(commands string, at []int) bool {
	before, after := commands[:at[0]], commands[at[1]:]
	return strings.HasSuffix(before, "$") || strings.HasSuffix(before, "${") || strings.HasPrefix(after, "=") || strings.HasPrefix(after, ":")
}
