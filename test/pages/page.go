// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrMark is in every error about marks of a page.
var ErrMark = errors.New("wrong mark")

// Page is a page of the documentation.
type Page struct {
	// Name of the file without its ending, such as back-up.
	Name string
	// Steps are the commands that run as a test, in their order.
	Steps []Step
	// Reason says why no commands of the page run as a test.
	Reason string
	// HasCommands is true if the page has a block of commands, marked or not.
	HasCommands bool
}

// Step is a block of commands that run as a test.
type Step struct {
	// Line is the number of the first line of the commands in the page.
	Line     int
	Commands string
	// Output is what the page shows as output of the commands.
	Output string
}

const (
	markTest   = "<!-- test -->"
	markOutput = "<!-- output -->"
	markSetup  = "<!-- setup"
	endComment = "-->"
)

var (
	reason = regexp.MustCompile(`^<!-- no test: (.+) -->$`)
	fence  = regexp.MustCompile("^( *)(```+)([a-z]*)$")
	// typed finds the first command of a block that names no language.
	typed = regexp.MustCompile(`^(?:kubectl|helm|make) `)
)

// ReadAll reads the pages of the folders of docs, in alphabetical order.
func ReadAll(docs string) (map[string][]*Page, error) {
	files, err := filepath.Glob(filepath.Join(docs, "*", "*.md"))
	if err != nil {
		return nil, err
	}
	folders := map[string][]*Page{}
	for _, file := range files {
		page, err := Read(file)
		if err != nil {
			return nil, err
		}
		folder := filepath.Base(filepath.Dir(file))
		folders[folder] = append(folders[folder], page)
	}
	return folders, nil
}

// Read reads a page. The error names file and line of a mark that is wrong.
func Read(file string) (*Page, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	r := &reader{page: &Page{Name: strings.TrimSuffix(filepath.Base(file), ".md")}, lines: strings.Split(string(text), "\n")}
	for r.next < len(r.lines) {
		if err := r.read(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, r.next, err)
		}
	}
	return r.page, nil
}

// Check returns an error if the page has commands, and neither are some marked nor does a reason
// say why not.
func (p *Page) Check() error {
	switch {
	case len(p.Steps) > 0 && p.Reason != "":
		return fmt.Errorf("%w: page %s has blocks that run as a test, and a reason why it has none; remove one", ErrMark, p.Name)
	case len(p.Steps) == 0 && p.Reason == "" && p.HasCommands:
		return fmt.Errorf("%w: page %s has commands and no block that runs as a test; mark one with %s, or write <!-- no test: REASON -->", ErrMark, p.Name, markTest)
	}
	return nil
}

// reader reads the lines of a page.
type reader struct {
	page  *Page
	lines []string
	next  int
	// mark is the mark in the line before, if it has one.
	mark string
}

// read reads a line, or all lines of a block or a comment.
func (r *reader) read() error {
	line := r.lines[r.next]
	r.next++
	before := r.mark
	r.mark = ""
	if open := fence.FindStringSubmatch(line); open != nil {
		return r.readBlock(before, open[1], open[2], open[3])
	}
	if before != "" {
		return fmt.Errorf("%w: no block follows %s", ErrMark, before)
	}
	text := strings.TrimSpace(line)
	match := reason.FindStringSubmatch(text)
	switch {
	case text == markTest, text == markOutput:
		r.mark = text
	case text == markSetup:
		first := r.next
		commands, err := r.until(endComment)
		r.page.Steps = append(r.page.Steps, Step{Line: first + 1, Commands: commands})
		return err
	case match != nil:
		r.page.Reason = match[1]
	case strings.HasPrefix(text, "<!--") && r.next < len(r.lines) && fence.MatchString(r.lines[r.next]):
		return fmt.Errorf("%w: %s is neither %s nor %s", ErrMark, text, markTest, markOutput)
	}
	return nil
}

func (r *reader) readBlock(mark, indent, fence, language string) error {
	first := r.next
	text, err := r.until(indent + fence)
	if err != nil {
		return err
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	text = strings.Join(lines, "\n")
	isShell := language == "sh" || language == "" && typed.MatchString(text)
	r.page.HasCommands = r.page.HasCommands || isShell
	switch {
	case mark == markTest && !isShell:
		return fmt.Errorf("%w: the block after %s needs the language sh", ErrMark, mark)
	case mark == markTest:
		r.page.Steps = append(r.page.Steps, Step{Line: first + 1, Commands: text})
	case mark == markOutput && len(r.page.Steps) == 0:
		return fmt.Errorf("%w: no block of commands comes before %s", ErrMark, mark)
	case mark == markOutput:
		r.page.Steps[len(r.page.Steps)-1].Output += text
	}
	return nil
}

// until returns the lines before the line that ends a block or a comment.
func (r *reader) until(end string) (string, error) {
	first := r.next
	for ; r.next < len(r.lines); r.next++ {
		if r.lines[r.next] == end {
			r.next++
			return strings.Join(append(r.lines[first:r.next-1:r.next-1], ""), "\n"), nil
		}
	}
	return "", fmt.Errorf("%w: %s is missing after line %d", ErrMark, end, first)
}
