// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// Why draws what is wrong with a cluster, why, and what to do.
func Why(w io.Writer, why *report.Why, style Style) {
	text := why.Message
	if text == "" {
		text = "the members say nothing more"
	}
	fmt.Fprintln(w, style.wrap(fmt.Sprintf("%s is %s: %s", style.paint(bold, why.Namespace+"/"+why.Name), style.verdict(why.Verdict), text), "  "))
	if !why.Live {
		fmt.Fprintln(w, style.paint(yellow, "This is what the status says; the members were not probed."))
	}
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(w, "\n%s\n", style.paint(bold, title))
		for _, line := range lines {
			fmt.Fprintln(w, style.wrap("  - "+strings.ReplaceAll(line, "\n", "\n    "), "    "))
		}
	}
	section("What is wrong", why.Faults)
	section("What could not be read", why.Problems)
	section("What the controller does", why.Work)
	if why.BlockedBy != nil {
		section("What the controller waits for", []string{blockedBy(&why.Status, style)})
	}
	drawWarnings(w, why.Warnings, style)
	if len(why.NextSteps) > 0 {
		fmt.Fprintf(w, "\n%s\n", style.paint(bold, "What to do next"))
		drawSteps(w, why.NextSteps, "  ", style, 0)
	}
	if len(why.Faults)+len(why.Problems)+len(why.Work)+len(why.NextSteps) == 0 && why.BlockedBy == nil {
		fmt.Fprintln(w, "\nNothing is wrong. No action is needed.")
	}
}

func drawWarnings(w io.Writer, list []report.Warning, style Style) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", style.paint(bold, "Recent warnings"))
	t := &table{}
	for _, e := range list {
		count := ""
		if e.Count > 1 {
			count = fmt.Sprintf(" (%d times)", e.Count)
		}
		t.add(Age(style.Now.Sub(e.Last.Time))+" ago", e.Object, e.Reason+count, firstLine(e.Message))
	}
	for _, line := range t.lines() {
		fmt.Fprintln(w, style.wrap("  "+line, "      "))
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
