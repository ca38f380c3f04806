// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	target   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title    = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor = regexp.MustCompile(`[^\w\- ]`)
)

func withoutFences(text string) string { return fence.ReplaceAllString(text, "") }

// checkLinks follows every relative link of the pages, and its anchor.
func checkLinks(root string, pages []string) []error {
	var found []error
	anchors := map[string]map[string]bool{}
	for _, page := range pages {
		text := codeSpan.ReplaceAllString(withoutFences(read(root, page)), "")
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[1], "http") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				found = append(found, fmt.Errorf("%s: %s does not exist", page, m[1]))
				continue
			}
			if anchor == "" || !strings.HasSuffix(to, ".md") {
				continue
			}
			if anchors[to] == nil {
				anchors[to] = anchorsOf(read(root, to))
			}
			if !anchors[to][anchor] {
				found = append(found, fmt.Errorf("%s: %s has no such heading", page, m[1]))
			}
		}
	}
	return found
}

// anchorsOf returns the anchors of the headings of a page.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, m := range title.FindAllStringSubmatch(withoutFences(text), -1) {
		name := linkText.ReplaceAllString(m[1], "$1")
		name = strings.NewReplacer("`", "", "*", "").Replace(name)
		name = noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(name)), "")
		anchors[strings.ReplaceAll(name, " ", "-")] = true
	}
	return anchors
}
