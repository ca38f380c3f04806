// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oldest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/e2e"
)

// TestCoreExists: no name of the core suite is that of a test which was renamed or removed.
func TestCoreExists(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "test", "e2e", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil {
				tests[function.Name.Name] = true
			}
		}
	}
	for _, name := range e2e.Core() {
		if !tests[name] {
			t.Errorf("test/e2e has no test %s", name)
		}
	}
}
