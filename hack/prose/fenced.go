// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

var (
	fence = regexp.MustCompile("^ *(`{3,})(.*)$")
	// columns separates the columns of a list or the parts of a diagram. A single space belongs
	// to a sentence.
	columns = regexp.MustCompile(`\s{2,}|[─│┌┐└┘├┤┬┴┼▶▼▲◀]+`)
)

// outputMarker stands before a fence with what a command prints. See docs/contributing.
const outputMarker = "<!-- output -->"

// fenced returns the prose in the code fences of a Markdown file: comments in commands and
// manifests, and the parts of lists and diagrams. What programs print is no prose of the page:
// it comes after the marker, or begins with the prompt of a shell.
func fenced(text string) []block {
	var blocks []block
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		open := fence.FindStringSubmatch(lines[i])
		if open == nil {
			continue
		}
		end := i + 1
		for end < len(lines) && !closes(lines[end], open[1]) {
			end++
		}
		content := lines[i+1 : min(end, len(lines))]
		switch language := strings.TrimSpace(open[2]); {
		case language == "sh" || language == "yaml":
			blocks = append(blocks, moved(hashComments(strings.Join(content, "\n")), i+1)...)
		case language == "" && !isOutput(lines[:i], content):
			blocks = append(blocks, moved(parts(content), i+1)...)
		}
		i = end
	}
	return blocks
}

// closes tells whether a line ends the fence that the given backticks have begun.
func closes(text, backticks string) bool {
	end := fence.FindStringSubmatch(text)
	return end != nil && len(end[1]) >= len(backticks) && strings.TrimSpace(end[2]) == ""
}

// isOutput tells whether a fence holds what a program prints.
func isOutput(before, content []string) bool {
	for len(before) > 0 && strings.TrimSpace(before[len(before)-1]) == "" {
		before = before[:len(before)-1]
	}
	if len(before) > 0 && strings.TrimSpace(before[len(before)-1]) == outputMarker {
		return true
	}
	return len(content) > 0 && strings.HasPrefix(strings.TrimSpace(content[0]), "$ ")
}

// parts returns each part of a line that has more than one word as a block.
func parts(content []string) []block {
	var blocks []block
	for i, l := range content {
		for _, part := range columns.Split(l, -1) {
			if twoWords.MatchString(part) {
				blocks = append(blocks, block{{i + 1, strings.TrimSpace(escape(part))}})
			}
		}
	}
	return blocks
}

// moved adds the number of lines before a fence to the numbers of its lines.
func moved(blocks []block, by int) []block {
	for _, b := range blocks {
		for i := range b {
			b[i].number += by
		}
	}
	return blocks
}
