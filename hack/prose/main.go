// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// errFindings ends the program with a failure after the findings were printed.
var errFindings = errors.New("prose: fix the findings above; language rules are in hack/prose/styles and hack/prose/words.txt")

// finding is one sentence, word or name that breaks a rule.
type finding struct {
	path    string
	line    int
	rule    string
	message string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks the named files, which are paths relative to the current directory.
func run(args []string) error {
	flags := flag.NewFlagSet("prose", flag.ContinueOnError)
	vale := flags.String("vale", "vale", "Path of the Vale program.")
	config := flags.String("config", "hack/prose/vale.ini", "Path of Vale's configuration.")
	summary := flags.Bool("summary", false, "Print the number of findings per folder and per rule instead of the findings.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	words, err := parseWords(wordList)
	if err != nil {
		return err
	}
	var findings []finding
	var texts []source
	for _, path := range flags.Args() {
		text, names, err := extract(path, words)
		if err != nil {
			return err
		}
		findings = append(findings, names...)
		if len(text.blocks) > 0 {
			texts = append(texts, text)
		}
	}
	checked, err := runVale(*vale, *config, texts)
	if err != nil {
		return err
	}
	findings = append(findings, checked...)
	if *summary {
		printSummary(findings)
	} else {
		printFindings(findings)
	}
	if len(findings) > 0 {
		return errFindings
	}
	return nil
}

func printFindings(findings []finding) {
	slices.SortFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.line, b.line), cmp.Compare(a.message, b.message))
	})
	for _, f := range findings {
		fmt.Printf("%s:%d: %s (%s)\n", f.path, f.line, f.message, f.rule)
	}
}

func printSummary(findings []finding) {
	folders, rules := map[string]int{}, map[string]int{}
	for _, f := range findings {
		folders[filepath.Dir(f.path)]++
		rules[f.rule]++
	}
	for _, counts := range []map[string]int{folders, rules} {
		keys := make([]string, 0, len(counts))
		for key := range counts {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			fmt.Printf("%6d %s\n", counts[key], key)
		}
	}
	fmt.Printf("%6d in all\n", len(findings))
}
