// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/screen"
)

const (
	// patience is how long something may take before its progress is shown.
	patience = 2 * time.Second
	// repeat is after how long the same progress is printed again where no terminal is.
	repeat = 30 * time.Second
	// barCells is the width of the bar.
	barCells = 20
)

// Step is how far something is.
type Step struct {
	// Text says what happens now.
	Text string
	// Done and Total are parts of the whole; without a Total there is no bar.
	Done, Total int64
	// Bytes is true if Done and Total are bytes.
	Bytes bool
}

// Line shows the progress of one thing.
type Line struct {
	out      io.Writer
	terminal bool
	unicode  bool
	width    func() int
	clock    clock.PassiveClock
	title    string
	started  time.Time
	printed  time.Time
	last     string
	open     bool
}

// Options say where a line goes.
type Options struct {
	Out io.Writer
	// Terminal is true if Out can write a line again.
	Terminal bool
	// Unicode is true if Out shows more than ASCII.
	Unicode bool
	// Width returns the number of columns of the terminal; 0 if it is not known.
	Width func() int
	Clock clock.PassiveClock
}

// NewLine starts a line; its time counts from now.
func NewLine(title string, o Options) *Line {
	return &Line{out: o.Out, terminal: o.Terminal, unicode: o.Unicode, width: o.Width, clock: o.Clock, title: title, started: o.Clock.Now()}
}

// Show shows a step. Nothing appears in the first two seconds.
func (l *Line) Show(s Step) {
	now := l.clock.Now()
	took := now.Sub(l.started)
	if took < patience {
		return
	}
	if l.terminal {
		l.rewrite(l.describe(s, took))
		return
	}
	// A number that grows is no change by itself: a log would get a line a second.
	key := s.Text
	if !s.Bytes {
		key = l.describe(s, 0)
	}
	if key == l.last && now.Sub(l.printed) < repeat {
		return
	}
	l.last, l.printed = key, now
	fmt.Fprintln(l.out, l.describe(s, took))
}

// End removes the line of a terminal and prints the outcome, which is the result of a command
// and may go elsewhere than its progress.
func (l *Line) End(to io.Writer, outcome string) {
	l.Clear()
	if took := l.clock.Since(l.started); took >= patience {
		outcome += "  " + elapsed(took)
	}
	fmt.Fprintln(to, outcome)
}

// clearLine goes back to the beginning of the line and removes it.
const clearLine = "\r\x1b[K"

// Clear removes the line of a terminal.
func (l *Line) Clear() {
	if l.open {
		screen.Code(l.out, clearLine)
		l.open = false
	}
}

func (l *Line) rewrite(text string) {
	if columns := l.width(); columns > 1 {
		text = cut(text, columns-1)
	}
	l.open = true
	screen.Code(l.out, clearLine)
	fmt.Fprint(l.out, text)
}

// describe puts the text last: a terminal cuts the end of a line.
func (l *Line) describe(s Step, took time.Duration) string {
	parts := []string{l.title}
	if s.Total > 0 {
		parts = append(parts, Bar(s.Done, s.Total, l.unicode), amount(s))
	} else if s.Bytes && s.Done > 0 {
		parts = append(parts, Size(s.Done))
	}
	parts = append(parts, elapsed(took))
	if s.Text != "" {
		parts = append(parts, strings.Join(strings.Fields(s.Text), " ")) // a message may have several lines
	}
	return strings.Join(parts, "  ")
}

func amount(s Step) string {
	if s.Bytes {
		return fmt.Sprintf("%s of %s, %d%%", Size(s.Done), Size(s.Total), percent(s.Done, s.Total))
	}
	return fmt.Sprintf("%d of %d", s.Done, s.Total)
}

func percent(done, total int64) int64 {
	return min(100, int64(float64(done)*100/float64(total)))
}

// Bar draws a bar of a part of a whole.
func Bar(done, total int64, unicode bool) string {
	full, empty := "#", "-"
	if unicode {
		full, empty = "█", "░"
	}
	cells := int(percent(done, total)) * barCells / 100
	return "[" + strings.Repeat(full, cells) + strings.Repeat(empty, barCells-cells) + "]"
}

// Size writes bytes with a binary unit.
func Size(bytes int64) string {
	const units = "KMGTP"
	if bytes < 1024 {
		return fmt.Sprintf("%dB", bytes)
	}
	value, unit := float64(bytes), -1
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if value >= 10 {
		return fmt.Sprintf("%.0f%ci", value, units[unit])
	}
	return fmt.Sprintf("%.1f%ci", value, units[unit])
}

func elapsed(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

// cut shortens a text to a number of columns.
func cut(text string, columns int) string {
	runes := []rune(text)
	if len(runes) <= columns {
		return text
	}
	return string(runes[:columns])
}
