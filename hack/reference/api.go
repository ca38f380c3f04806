// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"reflect"
	"slices"
	"strings"
)

const apiDir = "pkg/apis/etcd/v1beta2"

// apiPage lists the types of the API and their fields.
func (s *source) apiPage() string {
	var b strings.Builder
	b.WriteString(generated + `
# API

Group ` + "`etcd.database.coreos.com`, version `v1beta2`" + `. The same texts are in ` + "`kubectl explain etcdcluster.spec`" + `. Fields are optional unless
their meaning says otherwise. How the kinds work together: [architecture](../architecture.md).

`)
	files := s.typeFiles()
	for _, kind := range []string{"EtcdCluster", "EtcdBackup", "EtcdRestore"} {
		fmt.Fprintf(&b, "- [%s](#%s)\n", kind, strings.ToLower(kind))
	}
	for _, f := range order(files) {
		for _, t := range f.types() {
			if !strings.HasSuffix(t.Name.Name, "List") {
				s.writeType(&b, t)
			}
		}
	}
	return b.String()
}

// typeFiles are the files whose types the page lists. A type in another file is written as one value, such as a text.
func (s *source) typeFiles() []*file {
	var files []*file
	for _, f := range s.files {
		if f.dir == apiDir && strings.Contains(f.path, "/types_") {
			files = append(files, f)
		}
	}
	return files
}

// isListed is true for a type that the page lists.
func (s *source) isListed(name string) bool {
	return slices.ContainsFunc(s.typeFiles(), func(f *file) bool {
		return slices.ContainsFunc(f.types(), func(t *ast.TypeSpec) bool { return t.Name.Name == name })
	})
}

// types are the types that the file declares.
func (f *file) types() []*ast.TypeSpec {
	var types []*ast.TypeSpec
	for _, decl := range f.tree.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok {
				types = append(types, t)
			}
		}
	}
	return types
}

// order puts the clusters first.
func order(files []*file) []*file {
	rank := func(f *file) int {
		for i, name := range []string{"types_cluster.go", "types_cluster_", "types_backup", "types_restore"} {
			if strings.Contains(f.path, name) {
				return i
			}
		}
		return len(files)
	}
	slices.SortStableFunc(files, func(a, b *file) int { return rank(a) - rank(b) })
	return files
}

func (s *source) writeType(b *strings.Builder, t *ast.TypeSpec) {
	name := t.Name.Name
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", name, escape(s.docs[apiDir+"."+name]))
	if st, ok := t.Type.(*ast.StructType); ok {
		b.WriteString("| field | type | meaning |\n|---|---|---|\n")
		for _, field := range st.Fields.List {
			tag := ""
			if field.Tag != nil {
				tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
			}
			key, _, _ := strings.Cut(tag, ",")
			if typeName(field.Type) == "TypeMeta" {
				continue
			}
			if key == "" {
				key = "(all fields of " + typeName(field.Type) + ")"
			}
			doc := plain(field.Doc)
			if key == "metadata" && doc == "" {
				doc = "Standard object metadata."
			}
			fmt.Fprintf(b, "| %s | %s | %s |\n", code(key), s.typeLink(field.Type), cell(doc))
		}
		return
	}
	values := false
	for _, c := range s.valuesOf(name) {
		if !values {
			b.WriteString("| value | meaning |\n|---|---|\n")
			values = true
		}
		value := cmp.Or(s.value(c.file, c.value), `""`)
		fmt.Fprintf(b, "| %s | %s |\n", code(value), cell(s.describe(c)))
	}
}

// valuesOf returns the constants of a type of the API.
func (s *source) valuesOf(typ string) []*constant {
	var list []*constant
	for _, c := range sortedValues(s.constants[apiDir]) {
		if c.typ == typ {
			list = append(list, c)
		}
	}
	return list
}

// typeLink shows a type, with a link if it is one of the API's own.
func (s *source) typeLink(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if s.isListed(e.Name) {
			return "[" + e.Name + "](#" + strings.ToLower(e.Name) + ")"
		}
		return e.Name
	case *ast.StarExpr:
		return s.typeLink(e.X)
	case *ast.ArrayType:
		return "list of " + s.typeLink(e.Elt)
	case *ast.MapType:
		return "map of " + s.typeLink(e.Key) + " to " + s.typeLink(e.Value)
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "*", "\\*").Replace(text)
}

// withoutName takes the name of what is described from the beginning of a comment.
func withoutName(doc string) string {
	first, rest, _ := strings.Cut(doc, " ")
	if strings.HasSuffix(first, ":") || (len(first) > 1 && strings.ToLower(first[1:]) != first[1:]) ||
		strings.HasPrefix(rest, "is ") || strings.HasPrefix(rest, "says ") || strings.HasPrefix(rest, "mirrors ") {
		return rest
	}
	return doc
}

func functionDoc(f *file, name string) string {
	for _, decl := range f.tree.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == name {
			return plain(fn.Doc)
		}
	}
	return ""
}

func sortedValues[T any](m map[string]T) []T {
	list := make([]T, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[key])
	}
	return list
}
