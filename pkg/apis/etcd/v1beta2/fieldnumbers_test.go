// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateFieldNumbers = flag.Bool("update-field-numbers", false, "add the new fields of generated.proto to testdata/field-numbers.txt")

const fieldNumbersFile = "testdata/field-numbers.txt"

var (
	messagePattern = regexp.MustCompile(`^message (\w+) \{$`)
	fieldPattern   = regexp.MustCompile(`^  ((?:optional|repeated|map)[^=]*?) ?(\w+) = (\d+);$`)
)

// readFields returns the fields of generated.proto, by message and number.
func readFields(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("generated.proto")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	message := ""
	for line := range strings.SplitSeq(string(data), "\n") {
		switch match := messagePattern.FindStringSubmatch(line); {
		case match != nil:
			message = match[1]
			continue
		case line == "}":
			message = ""
		}
		if match := fieldPattern.FindStringSubmatch(line); match != nil {
			fields[message+" "+match[3]] = match[2] + ": " + match[1]
		} else if message != "" && strings.Contains(line, " = ") && !strings.Contains(line, "//") {
			t.Fatalf("line is not understood: %q", line)
		}
	}
	return fields
}

// A stored object holds numbers, not names: a number that once meant a field may never
// mean another, and a field that is removed leaves its number unused.
func TestFieldNumbersNeverChange(t *testing.T) {
	fields := readFields(t)
	data, err := os.ReadFile(fieldNumbersFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	known := map[string]bool{}
	for _, line := range lines {
		number, meaning, found := strings.Cut(line, " = ")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		known[number] = true
		if got, exists := fields[number]; exists && got != meaning {
			t.Errorf("%s was %q and is now %q: give the field a new number", number, meaning, got)
		}
	}
	if len(known) < 100 && !*updateFieldNumbers {
		t.Errorf("%s lists only %d fields", fieldNumbersFile, len(known))
	}
	added := false
	for number, meaning := range fields {
		if known[number] {
			continue
		}
		added = true
		lines = append(lines, fmt.Sprintf("%s = %s", number, meaning))
		if !*updateFieldNumbers {
			t.Errorf("%s is new: run go test -update-field-numbers and commit %s", number, fieldNumbersFile)
		}
	}
	if !added || !*updateFieldNumbers || t.Failed() {
		return
	}
	slices.SortFunc(lines, compareNumbers)
	if err := os.WriteFile(fieldNumbersFile, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// compareNumbers sorts by message and then by number; comments come first.
func compareNumbers(a, b string) int {
	key := func(line string) string {
		if strings.HasPrefix(line, "#") {
			return ""
		}
		var message string
		var number int
		if n, _ := fmt.Sscanf(line, "%s %d =", &message, &number); n != 2 {
			return ""
		}
		return fmt.Sprintf("%s %06d", message, number)
	}
	return strings.Compare(key(a), key(b))
}
