// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// longestSentence is how many words a sentence of the README may have.
const longestSentence = 30

// check returns the defects of the pages:
//
//   - Links lead nowhere.
//   - Files of the concept table do not exist.
//   - An alert has no runbook, or a runbook no alert.
//   - A generated table has an empty cell.
//   - A flag is missing on the page of flags.
//   - A sentence of the README is too long.
func check(root string, pages []string) error {
	var found []error
	found = append(found, checkLinks(root, pages)...)
	found = append(found, checkConcepts(root)...)
	found = append(found, checkAlerts(root)...)
	found = append(found, checkCells(root)...)
	found = append(found, checkFlags(root)...)
	found = append(found, checkSentences(root)...)
	return errors.Join(found...)
}

func read(root, name string) string {
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return ""
	}
	return string(data)
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	alert    = regexp.MustCompile(`(?m)^\s*- alert: (\w+)`)
	heading  = regexp.MustCompile(`(?m)^## (\w+)\s*$`)
	flagName = regexp.MustCompile("`--([a-z][a-z0-9-]+)")
)

// checkConcepts returns the missing files of the last table of the architecture page. A path
// with a directory must exist. A bare file name must be in the directory of the path before.
func checkConcepts(root string) []error {
	const page = "docs/architecture.md"
	_, table, there := strings.Cut(read(root, page), "| concept | file |")
	if !there {
		return []error{fmt.Errorf("%s: the table \"| concept | file |\" is missing", page)}
	}
	var found []error
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		const columns = 2
		if len(cells) < columns {
			continue
		}
		found = append(found, checkRow(root, page, cells)...)
	}
	return found
}

// checkRow looks for the files of one row. A bare name is that of a file in one of the
// directories of the row.
func checkRow(root, page string, cells []string) []error {
	var dirs, names []string
	for _, span := range codeSpan.FindAllStringSubmatch(cells[len(cells)-1], -1) {
		path := span[1]
		switch {
		case strings.ContainsAny(path, " {}"), !strings.Contains(path, "/") && !strings.Contains(path, ".go"):
			// the name of a function or of a test
		case !matches(root, path):
			names = append(names, path)
		case strings.Contains(filepath.Base(path), "."):
			dirs = append(dirs, filepath.Dir(path))
		default:
			dirs = append(dirs, path)
		}
	}
	var found []error
	for _, name := range names {
		if !slices.ContainsFunc(dirs, func(dir string) bool { return matches(root, filepath.Join(dir, name)) }) {
			found = append(found, fmt.Errorf("%s: %s does not exist (%s)", page, name, strings.TrimSpace(cells[0])))
		}
	}
	return found
}

func matches(root, pattern string) bool {
	list, err := filepath.Glob(filepath.Join(root, pattern))
	return err == nil && len(list) > 0
}

// checkAlerts compares the alerts with the headings of their runbooks.
func checkAlerts(root string) []error {
	const rules, page = "artifacts/monitoring/alerts.yaml", "docs/reference/alerts.md"
	alerts, runbooks := map[string]bool{}, map[string]bool{}
	for _, m := range alert.FindAllStringSubmatch(read(root, rules), -1) {
		alerts[m[1]] = true
	}
	var found []error
	for _, m := range heading.FindAllStringSubmatch(read(root, page), -1) {
		runbooks[m[1]] = true
		if !alerts[m[1]] {
			found = append(found, fmt.Errorf("%s: %s is not an alert of %s", page, m[1], rules))
		}
	}
	for name := range alerts {
		if !runbooks[name] {
			found = append(found, fmt.Errorf("%s: alert %s has no runbook", page, name))
		}
	}
	return found
}

// generatedTables are the pages whose tables tell what a constant of the sources means.
var generatedTables = []string{"annotations.md", "api.md", "conditions.md", "events.md", "waits.md"}

// checkCells looks for empty cells of the generated tables: a constant without a doc comment,
// or a reason that has no place where a reader meets it.
func checkCells(root string) []error {
	var found []error
	for _, name := range generatedTables {
		page := "docs/reference/" + name
		for line := range strings.Lines(read(root, page)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			cells := strings.Split(strings.TrimSpace(strings.ReplaceAll(line, `\|`, "/")), "|")
			if slices.ContainsFunc(cells[1:len(cells)-1], func(cell string) bool { return strings.TrimSpace(cell) == "" }) {
				found = append(found, fmt.Errorf("%s: the row of %s has an empty cell; write the doc comment of its constant", page, strings.TrimSpace(cells[1])))
			}
		}
	}
	return found
}

// bringBack is the command that fills a member. Only the scripts call it, and its --help documents it.
var bringBack = regexp.MustCompile(`(?m)^\s*- bring-back\n(\s*(- --|#).*\n)+`)

// checkFlags looks for flags of the operator in the installation that are not documented.
func checkFlags(root string) []error {
	documented := map[string]bool{}
	for _, m := range flagName.FindAllStringSubmatch(read(root, "docs/reference/flags.md"), -1) {
		documented[m[1]] = true
	}
	var found []error
	files, err := filepath.Glob(filepath.Join(root, "artifacts/*/*.yaml"))
	if err != nil {
		return []error{err}
	}
	args := regexp.MustCompile(`(?m)^\s*- --([a-z][a-z0-9-]+)`)
	for _, file := range files {
		text := read("", file)
		if !strings.Contains(text, "/apiserver") && !strings.Contains(text, "/controller") {
			continue
		}
		for _, m := range args.FindAllStringSubmatch(bringBack.ReplaceAllString(text, ""), -1) {
			if !documented[m[1]] && !strings.HasPrefix(m[1], "raw") && m[1] != "filename" {
				found = append(found, fmt.Errorf("%s: flag --%s is not in docs/reference/flags.md", file, m[1]))
			}
		}
	}
	return found
}

// checkSentences looks for sentences of the README that are too long.
func checkSentences(root string) []error {
	var found []error
	for _, text := range units(withoutFences(read(root, "README.md"))) {
		for _, sentence := range sentenceEnd.Split(text, -1) {
			if words := strings.Fields(sentence); len(words) > longestSentence {
				found = append(found, fmt.Errorf("README.md: a sentence of %d words: %s …", len(words), strings.Join(words[:8], " ")))
			}
		}
	}
	return found
}

var (
	// sentenceEnd is no colon and no semicolon: what follows them belongs to the sentence.
	sentenceEnd = regexp.MustCompile(`[.!?][)*"]*(\s|$)`)
	listItem    = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	linkTarget  = regexp.MustCompile(`\]\([^)]*\)`)
)

// units returns the texts of a page that hold whole sentences: paragraphs, items of lists, cells
// of tables and headings.
func units(page string) []string {
	var list []string
	continues := false // the next line belongs to the last text
	for line := range strings.Lines(linkTarget.ReplaceAllString(page, "]")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continues = false
		case strings.HasPrefix(line, "|"):
			list = append(list, strings.Split(strings.Trim(line, "|"), "|")...)
			continues = false
		case strings.HasPrefix(line, "#"):
			list = append(list, line)
			continues = false
		case continues && !listItem.MatchString(line):
			list[len(list)-1] += " " + line
		default:
			list = append(list, listItem.ReplaceAllString(line, ""))
			continues = true
		}
	}
	return list
}
