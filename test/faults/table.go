// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Result is what one cell came to.
type Result struct {
	Cell Cell
	// Target is the role of the member that the fault befell; empty if it befell none.
	Target string
	// Operations of the clients, and those of them that got no response.
	Operations, Failed int
	LongestGap         time.Duration
	// Healthy is the time from the end of the fault until the cluster was as requested, 0 if it
	// never was.
	Healthy time.Duration
	// Problems are what contradicts the promises, one sentence each.
	Problems []string
}

// Verdict is "ok", or the problems.
func (r *Result) Verdict() string {
	if len(r.Problems) == 0 {
		return "ok"
	}
	return "FAILED: " + strings.Join(r.Problems, "; ")
}

// String is the line of the terminal.
func (r *Result) String() string {
	return fmt.Sprintf("%s: %d operations, %d failed, longest gap %s, time to healthy %s: %s",
		r.Cell, r.Operations, r.Failed, inSeconds(r.LongestGap), r.healthy(), r.Verdict())
}

// nothing is what the table has where there is nothing to say.
const nothing = "–"

func (r *Result) healthy() string {
	if r.Healthy == 0 {
		return nothing
	}
	return inSeconds(r.Healthy)
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// tableHeader is the head of the table; docs/explanation/faults.md has the same.
const tableHeader = "| fault | operation | size | target | operations | failed | longest gap | time to healthy | verdict |\n" +
	"|---|---|---|---|---|---|---|---|---|\n"

// row is the line of the table.
func (r *Result) row() string {
	target := r.Target
	if target == "" {
		target = nothing
	}
	// A line break or a bar would end the cell of the table.
	verdict := strings.NewReplacer("\n", " ", "|", "\\|").Replace(r.Verdict())
	return fmt.Sprintf("| %s | %s | %d | %s | %d | %d | %s | %s | %s |\n", r.Cell.Fault, r.Cell.Operation, r.Cell.Size, target,
		r.Operations, r.Failed, inSeconds(r.LongestGap), r.healthy(), verdict)
}

// summary is the line below the table.
func summary(results []Result) string {
	operations, failed, broken := 0, 0, 0
	for i := range results {
		operations += results[i].Operations
		failed += results[i].Failed
		if len(results[i].Problems) > 0 {
			broken++
		}
	}
	return fmt.Sprintf("%d cells, %d of them failed; %d operations, %d of them without a response", len(results), broken, operations, failed)
}

// WriteTable writes the results of a run.
func WriteTable(w io.Writer, seed uint64, results []Result) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Seed %d.\n\n%s", seed, tableHeader)
	for i := range results {
		text.WriteString(results[i].row())
	}
	fmt.Fprintf(&text, "\n%s.\n", summary(results))
	_, err := io.WriteString(w, text.String())
	return err
}
