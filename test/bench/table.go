// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// table is what was measured, in the order in which it first was.
type table struct {
	rows  []*series
	notes []string
}

// series is all repetitions of one figure.
type series struct {
	name   string
	unit   string
	values []float64
}

// add takes in one repetition.
func (t *table) add(name, unit string, value float64) {
	for _, s := range t.rows {
		if s.name == name {
			s.values = append(s.values, value)
			return
		}
	}
	t.rows = append(t.rows, &series{name: name, unit: unit, values: []float64{value}})
}

// addTime takes in one repetition of a time.
func (t *table) addTime(name string, value time.Duration) { t.add(name, "s", value.Seconds()) }

// note adds a line below the table.
func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *table) print(out io.Writer) {
	fmt.Fprintln(out, "| what | unit | median | range | n |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	for _, s := range t.rows {
		slices.Sort(s.values)
		fmt.Fprintf(out, "| %s | %s | %s | %s to %s | %d |\n", s.name, s.unit,
			number(s.median()), number(s.values[0]), number(s.values[len(s.values)-1]), len(s.values))
	}
	if len(t.notes) > 0 {
		fmt.Fprintln(out, "\n"+strings.Join(t.notes, "\n"))
	}
}

// median of sorted values.
func (s *series) median() float64 {
	n := len(s.values)
	return (s.values[(n-1)/2] + s.values[n/2]) / 2
}

// number shows a figure with as many digits as it deserves.
func number(v float64) string {
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%d", int64(v))
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
