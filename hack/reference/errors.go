// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// program is a section of the page of messages: the files whose messages it prints, logs or
// returns. The first program with a matching prefix counts.
type program struct {
	title    string
	prefixes []string
}

var programs = []program{
	{"API server", []string{"pkg/registry/", "pkg/apis/", "pkg/apiserver/", "cmd/apiserver/"}},
	{"Controller", []string{"pkg/planner/", "pkg/controller/", "cmd/controller/"}},
	{"Agent", []string{"pkg/agent/", "pkg/snapshot/", "pkg/objectstore/", "cmd/agent/"}},
	{"Launcher", []string{"cmd/launcher/"}},
	{"kubectl etcd", []string{"pkg/plugin/", "cmd/kubectl-etcd/"}},
	{"Several programs", []string{""}},
}

// errorsPage lists every message of the programs by the file that decides it.
func errorsPage(sources ...*source) string {
	byFile := map[string][]string{}
	for _, s := range sources {
		for _, f := range s.files {
			if strings.HasSuffix(f.dir, "test") {
				continue // a package for tests, such as etcdtest
			}
			m := &messages{source: s, file: f}
			ast.Inspect(f.tree, m.visit)
			if len(m.texts) > 0 {
				byFile[f.path] = m.texts
			}
		}
	}
	var b strings.Builder
	b.WriteString(generated + `
# Errors and messages

Every message of the programs, by the file that decides it: errors of requests, messages of conditions and events, lines of logs, and what
` + "`kubectl etcd`" + ` prints. Search the page for a part of the message. An ellipsis (…) stands for a name, a number or another message. An error may
consist of several messages with colons between them: search for the last one, which is the cause.

The help texts of flags are on the page of [flags](flags.md), those of metrics on the page of [metrics](metrics.md).
`)
	for i, p := range programs {
		title := false
		for _, path := range sortedKeys(byFile) {
			if programOf(path) != i {
				continue
			}
			if !title {
				fmt.Fprintf(&b, "\n## %s\n", p.title)
				title = true
			}
			fmt.Fprintf(&b, "\n### %s\n\n", link(path))
			slices.Sort(byFile[path])
			for _, text := range byFile[path] {
				fmt.Fprintf(&b, "- %s\n", escape(text))
			}
		}
	}
	return b.String()
}

// programOf returns the index of the program that a file belongs to.
func programOf(path string) int {
	return slices.IndexFunc(programs, func(p program) bool {
		return slices.ContainsFunc(p.prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
	})
}

// messages collects the messages of one file.
type messages struct {
	*source
	file  *file
	texts []string
}

// helpKeys are fields that hold texts of other pages: help of metrics and commands, and columns
// of tables.
var helpKeys = []string{"Help", "Short", "Long", "Example", "Use", "Description"}

func (m *messages) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field:
		// The tag of a field is no message.
		if n.Type != nil {
			ast.Inspect(n.Type, m.visit)
		}
		return false
	case *ast.KeyValueExpr:
		// A reason of one word that no condition has, such as that of an error of the API server.
		if reason := m.value(m.file, n.Value); ident(n.Key) == "Reason" && camel.MatchString(reason) && programOf(m.file.path) == 0 {
			m.texts = appendNew(m.texts, "reason "+reason)
		}
		return !slices.Contains(helpKeys, ident(n.Key))
	case *ast.CallExpr:
		return !isHelp(n)
	case *ast.BinaryExpr:
		if n.Op != token.ADD || !hasLiteral(n) {
			return true
		}
		m.add(n)
		m.operands(n)
		return false
	case *ast.BasicLit:
		if n.Kind == token.STRING && !strings.Contains(n.Value, "\n") {
			m.add(n)
		}
	}
	return true
}

var (
	flagCall = regexp.MustCompile(`Var[A-Z]?$|^(Bool|Duration|Int|String)P?$`)
	twoWords = regexp.MustCompile(`[A-Za-z]{2}.* [^ ]*[A-Za-z]{2}`)
)

// isHelp is true of a call that defines a flag or a metric.
func isHelp(call *ast.CallExpr) bool {
	name := typeName(call.Fun)
	return flagCall.MatchString(name) || name == "NewDesc" || name == "desc"
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

// operands looks for messages in the operands of a sum, which are arguments of functions.
func (m *messages) operands(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		m.operands(e.X)
		m.operands(e.Y)
	case *ast.BasicLit:
	default:
		ast.Inspect(e, m.visit)
	}
}

func (m *messages) add(e ast.Expr) {
	text := m.wholeMessage(m.file, e)
	if twoWords.MatchString(text) {
		m.texts = appendNew(m.texts, text)
	}
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
