// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	// observationFiles hold what is observed: data, and no behaviour.
	observationFiles = []string{"observed.go", "observed_etcd.go", "reasons.go"}
	// factFiles say what follows from the objects of Kubernetes, from the member list, from the
	// declaration and from the last status. They judge no member, and no rule is in them.
	factFiles = []string{
		"bootstrapped.go", "certificate_input.go", "cluster_id.go", "desired.go", "member_versions.go", "membership.go",
		"objects.go", "pod_waits.go", "quorum.go", "reported.go", "started.go", "upgrade_path.go", "versions.go",
	}
	// judgementFiles say from facts what a member, a pod or the quorum needs. No rule, no plan and
	// no action is in them.
	judgementFiles = []string{
		"away.go", "cordon.go", "diagnosis.go", "loss.go", "member_change.go", "prepared.go", "put_back.go", "removal_candidate.go", "restarts.go", "split.go",
	}
)

// noImports fails every import: what other packages declare does not matter here.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// packageFiles parses the files of this package but its tests.
func packageFiles(t *testing.T) (*token.FileSet, map[string]*ast.File, *types.Info) {
	t.Helper()
	fset, files := token.NewFileSet(), map[string]*ast.File{}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		if files[path], err = parser.ParseFile(fset, path, nil, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	all := make([]*ast.File, 0, len(files))
	for _, file := range files {
		all = append(all, file)
	}
	if pkg, _ := config.Check("cluster", fset, all, info); pkg == nil { // each missing import is an error
		t.Fatal("the package could not be checked")
	}
	return fset, files, info
}

// TestObservationsHaveNoMethods: what is observed decides nothing.
func TestObservationsHaveNoMethods(t *testing.T) {
	t.Parallel()
	_, files, _ := packageFiles(t)
	observations := map[string]bool{}
	for _, name := range observationFiles {
		ast.Inspect(files[name], func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				observations[spec.Name.Name] = true
			}
			return true
		})
	}
	if !observations["Observed"] || !observations["Member"] {
		t.Fatalf("the observation types are not in %v: found %v", observationFiles, observations)
	}
	for path, file := range files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			receiver := f.Recv.List[0].Type
			if star, isPointer := receiver.(*ast.StarExpr); isPointer {
				receiver = star.X
			}
			if name, ok := receiver.(*ast.Ident); ok && observations[name.Name] {
				t.Errorf("%s: %s has the method %s; make it a function that takes what it needs", path, name.Name, f.Name.Name)
			}
		}
	}
}

// TestLayers: facts use no judgement, and judgements use no rule.
func TestLayers(t *testing.T) {
	t.Parallel()
	fset, files, info := packageFiles(t)
	facts := slices.Concat(observationFiles, factFiles)
	for name, layer := range map[string]struct{ files, mayUse []string }{
		"facts":      {facts, facts},
		"judgements": {judgementFiles, slices.Concat(facts, judgementFiles)},
	} {
		checked := 0
		for _, file := range layer.files {
			ast.Inspect(files[file], func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				if used := info.Uses[id]; used != nil && used.Pos().IsValid() {
					checked++
					if from := fset.Position(used.Pos()).Filename; !slices.Contains(layer.mayUse, from) {
						t.Errorf("%s uses %s of %s, which %s may not use", fset.Position(id.Pos()), id.Name, from, name)
					}
				}
				return true
			})
		}
		if checked < 200 {
			t.Errorf("only %d names were found in %v", checked, layer.files)
		}
	}
}
