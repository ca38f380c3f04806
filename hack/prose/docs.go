// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

var (
	// identifier is a word that can only be a name: with a capital letter inside, or of a test.
	identifier = regexp.MustCompile(`^([a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|Test[A-Z]\w*)$`)
	// statement is how the comment of a predicate goes on after its name.
	statement = regexp.MustCompile(`^([A-Za-z]+) is (true|false) `)
)

// checkDoc checks that a comment which begins with a name begins with the name of what it
// explains. After a change of a name the comment would keep the word that nothing else uses.
func (n *names) checkDoc(doc *ast.CommentGroup, explained ...*ast.Ident) {
	if doc == nil || len(explained) == 0 {
		return
	}
	text := strings.TrimSpace(doc.Text())
	first, _, _ := strings.Cut(strings.Join(strings.Fields(text), " ")+" ", " ")
	first = strings.TrimRight(first, ",:.")
	if !identifier.MatchString(first) && !statement.MatchString(text) {
		return
	}
	// The comments of fields begin with the names that JSON has.
	if slices.ContainsFunc(explained, func(i *ast.Ident) bool { return strings.EqualFold(i.Name, first) }) {
		return
	}
	n.findings = append(n.findings, finding{
		path: n.path, line: n.set.Position(doc.Pos()).Line, rule: "Plain.Docs",
		message: fmt.Sprintf("the comment of %s begins with the name %s", explained[0].Name, first),
	})
}

// specNames returns the names that a declaration of one constant, variable or type declares.
func specNames(d *ast.GenDecl) []*ast.Ident {
	if len(d.Specs) != 1 {
		return nil
	}
	switch s := d.Specs[0].(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{s.Name}
	case *ast.ValueSpec:
		return s.Names
	}
	return nil
}
