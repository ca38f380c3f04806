// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed words.txt
var wordList string

// avoidedWord is a word of the glossary that names must not contain.
type avoidedWord struct {
	pattern *regexp.Regexp
	// except, if not nil, matches names in which the word has another meaning.
	except *regexp.Regexp
	advice string
}

// parseWords reads the lines of words.txt.
func parseWords(text string) ([]avoidedWord, error) {
	var list []avoidedWord
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		fields := strings.Split(l, ";")
		if len(fields) != 3 {
			return nil, fmt.Errorf("words.txt: %q has %d fields; write pattern ; exception ; advice", l, len(fields))
		}
		pattern, err := regexp.Compile(`(^| )(` + strings.TrimSpace(fields[0]) + `)( |$)`)
		if err != nil {
			return nil, fmt.Errorf("words.txt: %w", err)
		}
		w := avoidedWord{pattern: pattern, advice: strings.TrimSpace(fields[2])}
		if except := strings.TrimSpace(fields[1]); except != "" {
			if w.except, err = regexp.Compile(except); err != nil {
				return nil, fmt.Errorf("words.txt: %w", err)
			}
		}
		list = append(list, w)
	}
	return list, nil
}
