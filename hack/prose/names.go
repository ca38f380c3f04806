// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// names checks what a Go file declares: packages, functions, types, fields, constants,
// variables and parameters. It also checks string literals in camel case, which are
// reasons and types of conditions and events.
type names struct {
	set      *token.FileSet
	path     string
	words    []avoidedWord
	findings []finding
}

func (n *names) visit(node ast.Node) bool {
	n.checkTestName(node)
	switch d := node.(type) {
	case *ast.File:
		n.check(d.Name)
	case *ast.FuncDecl:
		n.check(d.Name)
		n.checkPredicate(d)
		n.checkDoc(d.Doc, d.Name)
	case *ast.GenDecl:
		n.checkDoc(d.Doc, specNames(d)...)
	case *ast.TypeSpec:
		n.check(d.Name)
		n.checkDoc(d.Doc, d.Name)
	case *ast.ValueSpec:
		n.check(d.Names...)
		n.checkDoc(d.Doc, d.Names...)
	case *ast.Field:
		n.checkDoc(d.Doc, d.Names...)
		if !isWireName(d) {
			n.check(d.Names...)
		}
	case *ast.LabeledStmt:
		n.check(d.Label)
	case *ast.ImportSpec:
		if d.Name != nil {
			n.check(d.Name)
		}
		return false
	case *ast.AssignStmt:
		if d.Tok == token.DEFINE {
			n.expressions(d.Lhs...)
		}
	case *ast.RangeStmt:
		if d.Tok == token.DEFINE {
			n.expressions(d.Key, d.Value)
		}
	case *ast.BasicLit:
		if value, err := strconv.Unquote(d.Value); d.Kind == token.STRING && err == nil && camelCase.MatchString(value) {
			n.add(d.Pos(), value)
		}
	}
	return true
}

// isWireName tells that a field has the name that its JSON has, which is an API.
func isWireName(field *ast.Field) bool {
	if field.Tag == nil || len(field.Names) != 1 {
		return false
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return false
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return strings.EqualFold(name, field.Names[0].Name)
}

var camelCase = regexp.MustCompile(`^[A-Z][a-z]+[A-Za-z]*$`)

func (n *names) check(identifiers ...*ast.Ident) {
	for _, i := range identifiers {
		n.add(i.Pos(), i.Name)
	}
}

func (n *names) expressions(list ...ast.Expr) {
	for _, e := range list {
		if i, ok := e.(*ast.Ident); ok {
			n.check(i)
		}
	}
}

func (n *names) add(pos token.Pos, name string) {
	for _, advice := range avoided(name, n.words) {
		n.findings = append(n.findings, finding{
			path: n.path, line: n.set.Position(pos).Line, rule: "Plain.Names",
			message: fmt.Sprintf("name %s: %s", name, advice),
		})
	}
}

// checkFileName checks the name of a file without its extension.
func checkFileName(path string, words []avoidedWord) []finding {
	base, _, _ := strings.Cut(filepath.Base(path), ".")
	var findings []finding
	for _, advice := range avoided(base, words) {
		findings = append(findings, finding{path: path, line: 1, rule: "Plain.FileNames", message: "file name: " + advice})
	}
	return findings
}

// avoided returns the advice for each avoided word of a name. The name is split at
// capitals, underscores and hyphens into words, which are matched as one lower-case text.
func avoided(name string, words []avoidedWord) []string {
	split := strings.ToLower(strings.Join(splitWords(name), " "))
	var advice []string
	for _, w := range words {
		if w.pattern.MatchString(split) && (w.except == nil || !w.except.MatchString(split)) {
			advice = append(advice, w.advice)
		}
	}
	return advice
}

// splitWords splits "firstURLsOf_x" into first, URLs, Of, x.
func splitWords(name string) []string {
	var list []string
	begin := 0
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case r == '_' || r == '-' || r == '.':
			if i > begin {
				list = append(list, string(runes[begin:i]))
			}
			begin = i + 1
		case i > begin && isUpper(r) && (!isUpper(runes[i-1]) || (i+1 < len(runes) && isLower(runes[i+1]) && runes[i+1] != 's')):
			list = append(list, string(runes[begin:i]))
			begin = i
		}
	}
	if begin < len(runes) {
		list = append(list, string(runes[begin:]))
	}
	return list
}

func isUpper(r rune) bool { return r >= 'A' && r <= 'Z' }
func isLower(r rune) bool { return r >= 'a' && r <= 'z' }
