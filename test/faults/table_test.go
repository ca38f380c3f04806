// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// line is a line of a Markdown table.
func line(columns ...string) string { return "| " + strings.Join(columns, " | ") + " |\n" }

func TestTable(t *testing.T) {
	results := []Result{
		{Cell: Cell{DiskSlow, Steady, 3}, Target: "leader", Operations: 100, Failed: 2, LongestGap: 1234 * time.Millisecond, Healthy: 4 * time.Second},
		{Cell: Cell{DNSDown, ScaleUp, 3}, Operations: 50, Problems: []string{"one | thing", "another\nthing"}},
	}
	var text strings.Builder
	if err := WriteTable(&text, 42, results); err != nil {
		t.Fatal(err)
	}
	want := "Seed 42.\n\n" + tableHeader +
		line("disk-slow", "steady", "3", "leader", "100", "2", "1.2 s", "4.0 s", "ok") +
		line("dns-down", "scale-up", "3", "–", "50", "0", "0.0 s", "–", "FAILED: one \\| thing; another thing") +
		"\n2 cells, 1 of them failed; 150 operations, 2 of them without a response.\n"
	if text.String() != want {
		t.Errorf("the table is\n%s\nnot\n%s", text.String(), want)
	}
}

// TestPageOfResults compares the page with the table that a run writes. The page explains each
// fault and each operation.
func TestPageOfResults(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "explanation", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), tableHeader) {
		t.Errorf("docs/explanation/faults.md has another table than\n%s", tableHeader)
	}
	for _, fault := range Faults {
		if !strings.Contains(string(page), "| `"+string(fault)+"` |") {
			t.Errorf("docs/explanation/faults.md does not explain fault %s", fault)
		}
	}
	for _, operation := range Operations {
		if !strings.Contains(string(page), "| `"+string(operation)+"` |") {
			t.Errorf("docs/explanation/faults.md does not explain operation %s", operation)
		}
	}
}
