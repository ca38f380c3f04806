// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"regexp"
	"strings"
)

var (
	randomSuffix = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{10}\b`)
	anyNumber    = regexp.MustCompile(`\d+`)
)

// Missing returns the lines of the expected output that no line of the real one
// contains, after what differs from run to run was made the same in both.
func Missing(expected, printed string) []string {
	var missing []string
	lines := strings.Split(sameEachRun(printed), "\n")
	for want := range strings.SplitSeq(strings.TrimSpace(sameEachRun(expected)), "\n") {
		parts := strings.Split(want, "…")
		found := false
		for _, line := range lines {
			found = found || containsInOrder(line, parts)
		}
		if !found {
			missing = append(missing, want)
		}
	}
	return missing
}

// sameEachRun replaces random names and numbers, and makes one space of many.
func sameEachRun(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = anyNumber.ReplaceAllString(randomSuffix.ReplaceAllString(line, "-x"), "0")
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

func containsInOrder(line string, parts []string) bool {
	for _, part := range parts {
		_, after, found := strings.Cut(line, strings.TrimSpace(part))
		if !found {
			return false
		}
		line = after
	}
	return true
}
