// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// extractGo returns comments and messages of a Go file, and findings about its names.
func extractGo(path string, content []byte, words []avoidedWord) ([]block, []finding, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	var blocks []block
	for _, group := range file.Comments {
		if b := comment(set, group); len(b) > 0 {
			blocks = append(blocks, b)
		}
	}
	m := &messages{set: set}
	ast.Inspect(file, m.visit)
	n := &names{set: set, path: path, words: words}
	ast.Inspect(file, n.visit)
	return append(blocks, m.blocks...), n.findings, nil
}

var directive = regexp.MustCompile(`^//(?:[a-z]+:|line |export |extern )`)

// comment returns the text of a comment group without directives and markers.
func comment(set *token.FileSet, group *ast.CommentGroup) block {
	var b block
	for _, c := range group.List {
		first := set.Position(c.Pos()).Line
		if directive.MatchString(c.Text) {
			// An explanation may follow: "//nolint:gosec // the file is public".
			_, explanation, found := strings.Cut(c.Text[2:], "// ")
			if found {
				b = append(b, line{first, escape(explanation)})
			}
			continue
		}
		text := strings.TrimPrefix(c.Text, "//")
		if strings.HasPrefix(c.Text, "/*") {
			text = strings.TrimSuffix(c.Text[2:], "*/")
		}
		for i, t := range strings.Split(text, "\n") {
			t = strings.TrimPrefix(t, " ")
			if strings.HasPrefix(t, "+") || isNotProse(t) {
				t = ""
			}
			if strings.HasPrefix(t, "\t") {
				// Code of a doc comment: a block of its own in Markdown too.
				t = ""
			}
			b = append(b, line{first + i, escape(t)})
		}
	}
	return b
}

// messages collects string literals that hold more than one word. Literals that are
// added to each other are one message.
type messages struct {
	set    *token.FileSet
	blocks []block
}

func (m *messages) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field:
		// The tag of a field is no message.
		if n.Type != nil {
			ast.Inspect(n.Type, m.visit)
		}
		return false
	case *ast.BinaryExpr:
		if n.Op != token.ADD || !hasLiteral(n) {
			return true
		}
		m.add(m.flatten(n), false)
		return false
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			m.add(m.flatten(n), n.Value[0] == '`')
		}
	}
	return true
}

func hasLiteral(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (hasLiteral(e.X) || hasLiteral(e.Y))
	case *ast.BasicLit:
		return e.Kind == token.STRING
	}
	return false
}

// flatten returns the text of a literal, or of a sum in which every other operand counts
// as one word.
func (m *messages) flatten(e ast.Expr) block {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return append(m.flatten(e.X), m.flatten(e.Y)...)
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return nil
		}
		value, err := strconv.Unquote(e.Value)
		if err != nil {
			return nil
		}
		first := m.set.Position(e.Pos()).Line
		if e.Value[0] != '`' {
			return block{{first, strings.ReplaceAll(value, "\n", " ")}}
		}
		var b block
		for i, t := range strings.Split(value, "\n") {
			b = append(b, line{first + i, t})
		}
		return b
	}
	ast.Inspect(e, m.visit)
	return block{{m.set.Position(e.Pos()).Line, "X"}}
}

// inlineYAML is text for a parser on one line, such as "pod: {labels: {a: b}}".
var inlineYAML = regexp.MustCompile(`: [{\[]|[{\[]\{`)

var machineText = regexp.MustCompile(`(?m)^\s*(?:-\s+)?[A-Za-z][\w./-]*:(?:\s|$)|^\s*[{}\[<]|^\s*[a-z]+ \S*=|^\s*\w+\{\w+=`)

// add keeps the parts of a message as one block, on one line each. A raw literal may be a
// document for a program.
func (m *messages) add(parts block, raw bool) {
	if len(parts) == 0 {
		return
	}
	var whole strings.Builder
	for _, p := range parts {
		whole.WriteString(p.text + "\n")
	}
	if !twoWords.MatchString(whole.String()) || inlineYAML.MatchString(whole.String()) || (raw && len(parts) > 1 && machineText.MatchString(whole.String())) {
		return
	}
	var b block
	for _, p := range parts {
		text := plain(p.text)
		if strings.HasPrefix(p.text, "  ") {
			b = append(b, line{p.number, ""}) // a row of a table, not the rest of a sentence
		}
		if len(b) > 0 && b[len(b)-1].number == p.number && b[len(b)-1].text != "" {
			b[len(b)-1].text += text
			continue
		}
		b = append(b, line{p.number, text})
	}
	for i := range b {
		b[i].text = strings.TrimSpace(b[i].text)
	}
	m.blocks = append(m.blocks, b)
}

var (
	verb     = regexp.MustCompile(`%[-+# 0-9.\[\]*]*[a-zA-Z]`)
	markup   = regexp.MustCompile(`[<>*_|#\\]|^\s*[-=~]+`)
	variable = regexp.MustCompile(`\$\{?[A-Za-z_][A-Za-z_0-9]*\}?|\$\([^)]*\)`)
)

// plain returns a message as text that Markdown does not change: a value that is
// formatted into it counts as one word.
func plain(s string) string {
	return escape(variable.ReplaceAllString(verb.ReplaceAllString(s, "X"), "X"))
}

// escape takes out what would be markup in Markdown.
func escape(s string) string { return markup.ReplaceAllString(s, " ") }
