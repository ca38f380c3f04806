// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// extract returns the prose of a file, and findings about the names that it declares and
// about its own name. A file of an unknown type has no prose.
func extract(path string, words []avoidedWord) (source, []finding, error) {
	s := source{path: path}
	content, err := os.ReadFile(path)
	if err != nil {
		return s, nil, err
	}
	base := filepath.Base(path)
	names := checkFileName(path, words)
	switch filepath.Ext(base) {
	case ".go":
		if generated.Match(content) {
			return s, nil, nil
		}
		var found []finding
		s.blocks, found, err = extractGo(path, content, words)
		names = append(names, found...)
	case ".md":
		s.blocks = append([]block{document(string(content))}, fenced(string(content))...)
	case ".sh":
		s.blocks = append(hashComments(string(content)), printed(string(content))...)
	case ".yaml", ".yml":
		s.blocks = append(hashComments(string(content)), descriptions(string(content))...)
	default:
		if base == "Makefile" {
			s.blocks = hashComments(string(content))
		}
	}
	return s, names, err
}

var (
	generated   = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	hashComment = regexp.MustCompile(`(?:^|\s)##?@?(?:\s+(.*))?$`)
	quotation   = regexp.MustCompile(`<q>[^<]*</q>`)
	cellBreak   = regexp.MustCompile(`[.:;]?<br>`)
	quoted      = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"|'([^']*)'`)
	description = regexp.MustCompile(`^(\s*)(?:- )?(?:description|summary|message|impact|action): *(.*)$`)
	// inlineDescription is in a map such as {pkg: net, desc: "this package does no I/O"}.
	inlineDescription = regexp.MustCompile(`\{.*\bdesc: *"([^"]*)"`)

	twoWords = regexp.MustCompile(`[A-Za-z]{2,}[^A-Za-z ]* +[^A-Za-z ]*[A-Za-z]{2,}`)
)

// document returns the lines of a Markdown file without quotations of other programs. A line
// break in a cell of a table ends a sentence.
func document(text string) block {
	var b block
	for i, t := range strings.Split(text, "\n") {
		t = quotation.ReplaceAllString(t, "")
		b = append(b, line{i + 1, cellBreak.ReplaceAllString(t, ". ")})
	}
	return b
}

// hashComments returns the comments of a shell script, a Makefile or a YAML file. Comments
// on adjacent lines of their own are one block.
func hashComments(text string) []block {
	var blocks []block
	var current block
	end := func() {
		if len(current) > 0 {
			blocks = append(blocks, current)
		}
		current = nil
	}
	for i, t := range strings.Split(text, "\n") {
		own := strings.HasPrefix(strings.TrimSpace(t), "#")
		match := hashComment.FindStringSubmatch(t)
		if !own {
			end()
		}
		if match == nil || strings.HasPrefix(t, "#!") || strings.Contains(t, "shellcheck ") || isNotProse(match[1]) {
			continue
		}
		current = append(current, line{i + 1, match[1]})
		if !own {
			end()
		}
	}
	end()
	return blocks
}

func isNotProse(comment string) bool {
	return strings.HasPrefix(comment, "Copyright ") || strings.HasPrefix(comment, "SPDX-")
}

// printed returns the texts that a script prints.
func printed(text string) []block {
	var blocks []block
	for i, t := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(t), "#") {
			continue
		}
		for _, match := range quoted.FindAllStringSubmatch(t, -1) {
			if s := match[1] + match[2]; twoWords.MatchString(s) && !strings.ContainsAny(s, "{}|") {
				blocks = append(blocks, block{{i + 1, plain(s)}})
			}
		}
	}
	return blocks
}

// descriptions returns the values of keys that hold text for people: on the line of the key, in
// the indented lines after it, or in a map on one line.
func descriptions(text string) []block {
	var blocks []block
	var current block
	indent := -1
	for i, t := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(t)
		if indent >= 0 && trimmed != "" && len(t)-len(strings.TrimLeft(t, " ")) > indent {
			current = append(current, line{i + 1, plain(trimmed)})
			continue
		}
		if len(current) > 0 {
			blocks = append(blocks, current)
		}
		current, indent = nil, -1
		if match := inlineDescription.FindStringSubmatch(t); match != nil {
			blocks = append(blocks, block{{i + 1, plain(match[1])}})
			continue
		}
		if match := description.FindStringSubmatch(t); match != nil {
			indent = len(match[1])
			if value := strings.Trim(match[2], `>|-"' `); value != "" {
				current = block{{i + 1, plain(value)}}
			}
		}
	}
	if len(current) > 0 {
		blocks = append(blocks, current)
	}
	return blocks
}
