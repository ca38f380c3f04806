// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Lost compares two readings of an object as JSON. It returns what the first one has and the second
// one has not, or has with another value. Fields of these names do not count, at any depth.
func Lost(before, after any, volatile ...string) []string {
	return lost("", before, after, volatile)
}

func lost(path string, before, after any, volatile []string) []string {
	switch was := before.(type) {
	case map[string]any:
		now, ok := after.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is no object: %v", path, after)}
		}
		var differences []string
		for _, name := range slices.Sorted(maps.Keys(was)) {
			if slices.Contains(volatile, name) {
				continue
			}
			value, found := now[name]
			if !found {
				differences = append(differences, fmt.Sprintf("%s.%s no longer exists; it was %v", path, name, was[name]))
				continue
			}
			differences = append(differences, lost(path+"."+name, was[name], value, volatile)...)
		}
		return differences
	case []any:
		now, ok := after.([]any)
		if !ok || len(now) != len(was) {
			return []string{fmt.Sprintf("%s is %v; it was %v", path, after, before)}
		}
		var differences []string
		for i := range was {
			differences = append(differences, lost(fmt.Sprintf("%s[%d]", path, i), was[i], now[i], volatile)...)
		}
		return differences
	}
	if !reflect.DeepEqual(before, after) {
		return []string{fmt.Sprintf("%s is %v; it was %v", path, after, before)}
	}
	return nil
}
