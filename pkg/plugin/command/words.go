// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// splitLine splits a line into words as a POSIX shell does, with quotes, backslashes and
// comments. What a shell would replace, run or send elsewhere is rejected: to pass a "|" or a
// "$" on as text would read or write another key than the user means.
func splitLine(line string) ([]string, error) {
	var words []string
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, failure.Usage(fmt.Sprintf("the line cannot be split into words: %v; quote special characters with '", err))
	}
	if len(file.Stmts) == 0 {
		return nil, nil
	}
	statement := file.Stmts[0]
	call, isCall := statement.Cmd.(*syntax.CallExpr)
	if len(file.Stmts) > 1 || !isCall || len(call.Assigns) > 0 || len(statement.Redirs) > 0 || statement.Background || statement.Negated || statement.Semicolon.IsValid() {
		return nil, failure.Usage("a line is one command of etcdctl: pipes, redirections, variables and several commands are not possible; quote special characters with '")
	}
	for _, word := range call.Args {
		text, ok := plainText(word.Parts, unescaped)
		if !ok {
			return nil, failure.Usage("variables and commands in a line are not replaced; quote special characters with '")
		}
		words = append(words, text)
	}
	return words, nil
}

// unescaped and unescapedInQuotes remove the backslashes that quote a character.
var (
	escape            = regexp.MustCompile(`(?s)\\(.)`)
	escapeInQuotes    = regexp.MustCompile("\\\\([$`\"\\\\])")
	unescaped         = func(text string) string { return escape.ReplaceAllString(text, "$1") }
	unescapedInQuotes = func(text string) string { return escapeInQuotes.ReplaceAllString(text, "$1") }
)

// plainText returns the text of a word; false if a part of it does not stand for itself.
func plainText(parts []syntax.WordPart, literal func(string) string) (string, bool) {
	var text strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(literal(p.Value))
		case *syntax.SglQuoted:
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			quoted, ok := plainText(p.Parts, unescapedInQuotes)
			if !ok {
				return "", false
			}
			text.WriteString(quoted)
		default:
			return "", false
		}
	}
	return text.String(), true
}
