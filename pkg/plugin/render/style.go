// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Style is what the output can show.
type Style struct {
	// Color is true for a terminal that shows colors.
	Color bool
	// Unicode is true if more than ASCII can be shown.
	Unicode bool
	// Wide shows all columns.
	Wide bool
	// Width is how many columns a line of text may have; 0 for any number. Tables may be wider.
	Width int
	// Now is the time to which ages refer.
	Now time.Time
}

// Codes of colors.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
	bold   = "1"
	dim    = "2"
)

func (s Style) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// verdict paints a verdict by what it means.
func (s Style) verdict(v v1beta2.ClusterVerdict) string {
	switch v {
	case v1beta2.VerdictHealthy:
		return s.paint(green, string(v))
	case v1beta2.VerdictCreating, v1beta2.VerdictHibernated, v1beta2.VerdictDegraded:
		return s.paint(yellow, string(v))
	default:
		return s.paint(red, string(v))
	}
}

// mark is one column that says whether a member is well.
func (s Style) mark(healthy, fault bool) string {
	good, bad, other := "+", "x", "."
	if s.Unicode {
		good, bad, other = "✔", "✖", "•"
	}
	switch {
	case healthy:
		return s.paint(green, good)
	case fault:
		return s.paint(red, bad)
	default:
		return s.paint(yellow, other)
	}
}

// branch draws the line to a member; rest continues it below.
func (s Style) branch(last bool) (branch, rest string) {
	switch {
	case s.Unicode && last:
		return "└─", "  "
	case s.Unicode:
		return "├─", "│ "
	case last:
		return "`-", "  "
	default:
		return "|-", "| "
	}
}

// Age writes how long ago something was, with one or two units.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// since writes the age of a condition, whose times are strings.
func (s Style) since(at string) string {
	parsed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return ""
	}
	return " for " + Age(s.Now.Sub(parsed))
}

// table aligns cells. A cell may hold codes of colors, which have no width.
type table struct{ rows [][]string }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// lines returns the rows with two spaces between columns.
func (t *table) lines() []string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	lines := make([]string, 0, len(t.rows))
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-width(cell)+2))
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// width counts the columns of a text without codes of colors.
func width(text string) int {
	count := utf8.RuneCountInString(text)
	for {
		start := strings.Index(text, "\x1b[")
		if start < 0 {
			return count
		}
		end := strings.IndexByte(text[start:], 'm')
		if end < 0 {
			return count
		}
		count -= end + 1
		text = text[start+end+1:]
	}
}

// dash stands for an empty cell.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
