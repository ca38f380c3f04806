// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command prose checks words and sentences. It takes the prose out of source files, gives
// that prose to Vale with the styles beside it, and reports the findings at the lines of
// the source files. It also checks the names that Go files declare, the names of subtests, and
// which name a comment begins with.
//
// Prose is: Markdown, comments, string literals of Go with more than one word, texts that
// scripts print, help texts of the Makefile, and descriptions in YAML. In code fences of Markdown,
// lists, diagrams and comments are prose.
//
// It imports the standard library only. Start at run in main.go; extract.go chooses the
// extractor of a file, words.txt holds the words that names must not contain.
package main
