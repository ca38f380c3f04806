// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fielderrors

import (
	"reflect"
	"slices"
	"strings"
)

// nearest returns the field whose name is most like a name that no field has. It returns "" if more
// than a third of the letters differ: a guess would mislead.
func nearest(name string, fields map[string]reflect.Type) string {
	best, fewest := "", len(name)/3+1
	if len(name) > longestValue {
		return ""
	}
	for field := range fields {
		if more := len(name) - len(field); more >= fewest || -more >= fewest {
			continue // at least as many letters differ
		}
		changes := distance(strings.ToLower(name), strings.ToLower(field))
		if changes < fewest || changes == fewest && (best != "" && field < best) {
			best, fewest = field, changes
		}
	}
	return best
}

// distance is how many letters must be inserted, removed or replaced to make b of a. Two neighbours that are
// exchanged count once.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := slices.Clone(row)
		next[0] = i + 1
		for j := range len(b) {
			replace := row[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = min(replace, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
