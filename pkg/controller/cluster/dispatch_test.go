// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// TestEveryActionOfThePlannerHasAnEffect reads the action types from the planner's source: the
// compiler does not know whether the table of effects is complete.
func TestEveryActionOfThePlannerHasAnEffect(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../planner/cluster/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of the planner: %v", len(files), err)
	}
	var actions []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			method, is := declaration.(*ast.FuncDecl)
			if !is || method.Recv == nil || method.Name.Name != "action" {
				continue
			}
			if receiver, named := method.Recv.List[0].Type.(*ast.Ident); named {
				actions = append(actions, receiver.Name)
			}
		}
	}
	var handled []string
	for action := range effects {
		handled = append(handled, action.Name())
	}
	slices.Sort(actions)
	slices.Sort(handled)
	if len(actions) == 0 || !slices.Equal(actions, handled) {
		t.Errorf("the planner has the actions %q; the table of effects has %q", actions, handled)
	}
}
