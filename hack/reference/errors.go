// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// errorsPage lists the errors that the API server returns to requests.
func (s *source) errorsPage() string {
	byFile := map[string][]string{}
	for _, f := range s.files {
		if !strings.HasPrefix(f.dir, "pkg/registry/") && !strings.HasPrefix(f.dir, "pkg/apis/etcd/validation") && !strings.HasPrefix(f.dir, "pkg/apiserver") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				for _, text := range s.errorTexts(f, call) {
					byFile[f.path] = appendNew(byFile[f.path], text)
				}
			}
			return true
		})
	}
	var b strings.Builder
	b.WriteString(generated + `
# Errors of requests

The responses of the API server when it rejects a request, by the file that decides it. Search the page for a part of the message. An ellipsis (…)
stands for a name, a number or a longer explanation.
`)
	for _, path := range sortedKeys(byFile) {
		fmt.Fprintf(&b, "\n## %s\n\n", path)
		texts := byFile[path]
		slices.Sort(texts)
		for _, text := range texts {
			fmt.Fprintf(&b, "- %s\n", escape(text))
		}
	}
	return b.String()
}

// errorTexts returns the texts of a call that makes an error.
func (s *source) errorTexts(f *file, call *ast.CallExpr) []string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	at := -1
	switch pkg, name := ident(sel.X), sel.Sel.Name; {
	case pkg == "field" && slices.Contains([]string{"Invalid", "Forbidden", "Required"}, name):
		at = len(call.Args) - 1
	case pkg == "errors" && name == "New", pkg == "fmt" && name == "Errorf":
		at = 0
	case pkg == "apierrors" && strings.HasPrefix(name, "New"):
		at = len(call.Args) - 1
	}
	if at < 0 || at >= len(call.Args) {
		return nil
	}
	if lit, ok := call.Args[at].(*ast.BasicLit); ok && lit.Kind != token.STRING {
		return nil
	}
	const shortest = 12
	if text := s.message(f, call.Args[at]); len(strings.ReplaceAll(text, "…", "")) >= shortest {
		return []string{text}
	}
	return nil
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
