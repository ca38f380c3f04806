// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// continuation is the beginning of a name that only has a meaning after the name before it.
var continuation = regexp.MustCompile(`^(and|then|so|but|nor|until|also|or|unless|which|such as|though|although) `)

// checkTestName checks that the name of a subtest stands alone: a report of failures shows it
// without the names before. Names are the first value of a row, the key of a row, or the first
// argument of Run.
func (n *names) checkTestName(node ast.Node) {
	if !strings.HasSuffix(n.path, "_test.go") {
		return
	}
	var name ast.Expr
	switch node := node.(type) {
	case *ast.CompositeLit:
		// A list of strings is no row.
		if list, ok := node.Type.(*ast.ArrayType); len(node.Elts) > 1 && (!ok || !isString(list.Elt)) {
			name = node.Elts[0]
		}
	case *ast.KeyValueExpr:
		name = node.Key
	case *ast.CallExpr:
		if sel, ok := node.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Run" && len(node.Args) > 0 {
			name = node.Args[0]
		}
	}
	literal, ok := name.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return
	}
	if text, err := strconv.Unquote(literal.Value); err == nil && continuation.MatchString(text) {
		n.findings = append(n.findings, finding{
			path: n.path, line: n.set.Position(literal.Pos()).Line, rule: "Plain.TestNames",
			message: fmt.Sprintf("the name %q continues the name before it: write a name that stands alone", text),
		})
	}
}

func isString(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "string"
}
