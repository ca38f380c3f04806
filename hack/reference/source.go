// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

const module = "github.com/etcd-operator/etcd-operator/"

// constant is a string constant of the module.
type constant struct {
	name, doc, typ string
	value          ast.Expr
	file           *file
}

// meaning returns the doc comment without the name with which it begins.
func (c *constant) meaning() string {
	return capital(strings.TrimLeft(strings.TrimPrefix(c.doc, c.name), ": "))
}

// file is one parsed Go file.
type file struct {
	path, dir string
	tree      *ast.File
	imports   map[string]string // name in the file → directory in the module
}

// source is every Go file of some directories, without tests and generated code.
type source struct {
	files     []*file
	constants map[string]map[string]*constant // directory → name
	functions map[string]map[string]*ast.FuncType
	structs   map[string]map[string]*ast.StructType
	docs      map[string]string // directory.Type → doc comment
}

// pluginDir has the plugin, which decides no reason of the API.
const pluginDir = "pkg/plugin"

// load parses the sources below some directories, without the plugin.
func load(root string, dirs ...string) (*source, error) {
	s := &source{
		constants: map[string]map[string]*constant{}, functions: map[string]map[string]*ast.FuncType{},
		structs: map[string]map[string]*ast.StructType{}, docs: map[string]string{},
	}
	set := token.NewFileSet()
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(p string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			if filepath.ToSlash(rel) == pluginDir {
				return filepath.SkipDir
			}
			if entry.IsDir() || !isSource(rel) {
				return nil
			}
			tree, err := parser.ParseFile(set, p, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			s.add(&file{path: filepath.ToSlash(rel), dir: path.Dir(filepath.ToSlash(rel)), tree: tree})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func isSource(rel string) bool {
	name := filepath.Base(rel)
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_generated") &&
		!strings.HasSuffix(name, ".pb.go") && !strings.Contains(rel, "pkg/generated/")
}

func (s *source) add(f *file) {
	f.imports = map[string]string{}
	for _, spec := range f.tree.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.HasPrefix(full, module) {
			continue
		}
		dir := strings.TrimPrefix(full, module)
		name := path.Base(dir)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		f.imports[name] = dir
	}
	s.files = append(s.files, f)
	for _, decl := range f.tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			put(s.functions, f.dir, d.Name.Name, d.Type)
		case *ast.GenDecl:
			s.addDecl(f, d)
		}
	}
}

func (s *source) addDecl(f *file, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil {
				doc = d.Doc
			}
			s.docs[f.dir+"."+spec.Name.Name] = plain(doc)
			if t, ok := spec.Type.(*ast.StructType); ok {
				put(s.structs, f.dir, spec.Name.Name, t)
			}
		case *ast.ValueSpec:
			if d.Tok != token.CONST {
				continue
			}
			doc := spec.Doc
			if doc == nil && len(d.Specs) == 1 {
				doc = d.Doc
			}
			if doc == nil {
				doc = spec.Comment
			}
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					put(s.constants, f.dir, name.Name, &constant{
						name: name.Name, doc: plain(doc), typ: typeName(spec.Type), value: spec.Values[i], file: f,
					})
				}
			}
		}
	}
}

func put[T any](m map[string]map[string]T, dir, name string, v T) {
	if m[dir] == nil {
		m[dir] = map[string]T{}
	}
	m[dir][name] = v
}

// constantOf returns the constant that an expression names; nil if it names none.
func (s *source) constantOf(f *file, e ast.Expr) *constant {
	switch e := e.(type) {
	case *ast.Ident:
		return s.constants[f.dir][e.Name]
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return s.constants[f.imports[x.Name]][e.Sel.Name]
		}
	case *ast.CallExpr: // a conversion
		if len(e.Args) == 1 {
			return s.constantOf(f, e.Args[0])
		}
	}
	return nil
}

// value returns the string that an expression is; empty if it is not constant.
func (s *source) value(f *file, e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			return ""
		}
		return text
	}
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "string" || ast.IsExported(id.Name)) {
			return s.value(f, call.Args[0])
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || s.functions[f.imports[ident(sel.X)]][sel.Sel.Name] != nil {
			return ""
		}
	}
	if c := s.constantOf(f, e); c != nil {
		return s.value(c.file, c.value)
	}
	return ""
}

func ident(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// typeName returns the last part of the name of a type.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.ArrayType:
		return typeName(e.Elt)
	}
	return ""
}

// plain returns a comment as one line, without markers of generators.
func plain(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(doc.Text()) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}
