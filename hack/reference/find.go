// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// choice is a place in the sources where a reason is chosen.
type choice struct {
	reason  string
	where   string // the condition or the type that carries the reason
	message string
	file    string
	doc     string // what the constant says about itself
	fn      string // the function
	event   bool
}

// camel is what a reason looks like.
var camel = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)

// finder walks one function.
type finder struct {
	*source
	file      *file
	fn        string
	condition string // the condition that the function computes, if it says so
	results   []string
	found     []choice
}

// find returns every place where a reason of a condition, of a wait or of an event is chosen.
func (s *source) find() []choice {
	var found []choice
	for _, f := range s.files {
		if strings.Contains(f.path, "/metrics") {
			continue
		}
		for _, decl := range f.tree.Decls {
			d := &finder{source: s, file: f}
			if fn, ok := decl.(*ast.FuncDecl); ok {
				d.fn, d.results = fn.Name.Name, reasonResults(fn)
				ast.Inspect(fn, d.conditionOf)
			}
			ast.Inspect(decl, d.visit)
			found = append(found, d.found...)
		}
	}
	return append(found, s.references(found)...)
}

// conditionOf notes `const t = ConditionX` of a function that computes one condition.
func (d *finder) conditionOf(n ast.Node) bool {
	spec, ok := n.(*ast.ValueSpec)
	if ok && len(spec.Values) == 1 && strings.Contains(typeName(spec.Values[0]), "Condition") {
		d.condition = d.value(d.file, spec.Values[0])
	}
	return true
}

// reasonResults says which results of a function are reasons: "" for those that are none.
func reasonResults(fn *ast.FuncDecl) []string {
	if fn.Type.Results == nil {
		return nil
	}
	var list []string
	for _, r := range fn.Type.Results.List {
		names := r.Names
		if names == nil {
			names = []*ast.Ident{{Name: ""}}
		}
		for _, name := range names {
			is := ""
			if name.Name == "reason" || isReason(typeName(r.Type)) ||
				(len(list) == 0 && typeName(r.Type) == "string" && strings.HasSuffix(strings.ToLower(fn.Name.Name), "reason")) {
				is = "reason"
			}
			list = append(list, is)
		}
	}
	return list
}

// ofActions are the types of reasons with which the planner tells the controller why it acts.
// No object shows them.
var ofActions = []string{"AddReason", "RemoveReason"}

func isReason(typ string) bool {
	return strings.HasSuffix(typ, "Reason") && !slices.Contains(ofActions, typ) || typ == "ErrorClass"
}

func (d *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		d.composite(n)
	case *ast.CallExpr:
		d.call(n)
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if name := typeName(left); i < len(n.Rhs) && len(n.Lhs) == len(n.Rhs) && (name == "reason" || name == "Reason") {
				d.add(n.Rhs[i], d.condition, nil)
			}
		}
	case *ast.ReturnStmt:
		for i, e := range n.Results {
			if len(n.Results) == len(d.results) && d.results[i] != "" {
				var next ast.Expr
				if i+1 < len(n.Results) {
					next = n.Results[i+1]
				}
				d.add(e, d.condition, next)
			}
		}
	}
	return true
}

// composite looks for a field with a reason.
func (d *finder) composite(lit *ast.CompositeLit) {
	var reason, message, of ast.Expr
	fields := d.fieldsOf(lit)
	for i, e := range lit.Elts {
		name := ""
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			name, e = ident(kv.Key), kv.Value
		} else if i < len(fields) {
			name = fields[i]
		}
		switch name {
		case "Reason", "reason":
			reason = e
		case "Message", "message":
			message = e
		case "Type":
			of = e
		}
	}
	if reason == nil {
		return
	}
	where := d.condition
	if of != nil {
		where = d.value(d.file, of)
	} else if where == "" || typeName(lit.Type) == "Wait" {
		where = typeName(lit.Type)
	}
	d.add(reason, where, message)
}

// fieldsOf returns the fields of a literal without keys.
func (d *finder) fieldsOf(lit *ast.CompositeLit) []string {
	dir := d.file.dir
	if sel, ok := lit.Type.(*ast.SelectorExpr); ok {
		dir = d.file.imports[ident(sel.X)]
	}
	t := d.structs[dir][typeName(lit.Type)]
	if t == nil {
		return nil
	}
	var names []string
	for _, field := range t.Fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// call looks for an argument whose parameter is a reason.
func (d *finder) call(call *ast.CallExpr) {
	dir := d.file.dir
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && d.file.imports[ident(sel.X)] != "" {
		dir = d.file.imports[ident(sel.X)]
	}
	name := typeName(call.Fun)
	var at int
	if name == "Eventf" {
		at = 2
	} else if fn := d.functions[dir][name]; fn != nil {
		at = reasonParameter(fn)
	} else {
		at = d.reasonAfterCondition(call)
	}
	if at < 0 || at >= len(call.Args) {
		return
	}
	where := d.condition
	for _, arg := range call.Args[:at] {
		if c := d.constantOf(d.file, arg); c != nil && strings.Contains(c.name, "Condition") {
			where = d.value(d.file, arg)
		}
	}
	if where == "" {
		where = result(d.functions[dir][name])
	}
	var message ast.Expr
	if at+1 < len(call.Args) {
		message = call.Args[at+1]
	}
	d.add(call.Args[at], where, message)
}

// reasonAfterCondition returns the index of an argument that is a constant reason, if the call
// names its condition before. The function is a variable, so its parameters are unknown.
func (d *finder) reasonAfterCondition(call *ast.CallExpr) int {
	condition := false
	for i, arg := range call.Args {
		c := d.constantOf(d.file, arg)
		switch {
		case c == nil:
		case strings.HasPrefix(c.name, "Condition"):
			condition = true
		case condition && isReasonConstant(c):
			return i
		}
	}
	return -1
}

// result names the type that a function returns.
func result(fn *ast.FuncType) string {
	if fn == nil || fn.Results == nil || len(fn.Results.List) == 0 {
		return ""
	}
	return typeName(fn.Results.List[0].Type)
}

func reasonParameter(fn *ast.FuncType) int {
	i := 0
	for _, p := range fn.Params.List {
		for _, name := range p.Names {
			typ := typeName(p.Type)
			if (name.Name == "reason" && typ == "string") || isReason(typ) {
				return i
			}
			i++
		}
	}
	return -1
}

// add notes a choice if the expression is a constant that looks like a reason.
func (d *finder) add(reason ast.Expr, where string, message ast.Expr) {
	if call, ok := reason.(*ast.CallExpr); ok && typeName(call.Fun) == "Or" {
		for _, arg := range call.Args {
			d.add(arg, where, message)
		}
		return
	}
	text := d.value(d.file, reason)
	if !camel.MatchString(text) {
		return
	}
	c := choice{reason: text, where: where, file: d.file.path, fn: d.fn}
	if k := d.constantOf(d.file, reason); k != nil {
		if slices.Contains(ofActions, k.typ) {
			return
		}
		c.event, c.doc = strings.HasPrefix(k.name, "Event"), k.meaning()
	}
	if message != nil {
		c.message = d.message(d.file, message)
	}
	d.found = append(d.found, c)
}

// references returns the places that use a constant of a reason which no other way has
// found, such as one that is passed on in a variable.
func (s *source) references(found []choice) []choice {
	known := map[string]bool{}
	for _, c := range found {
		known[kindOf(c.file)+c.reason] = true
	}
	var more []choice
	for _, f := range s.files {
		if strings.Contains(f.path, "/metrics") {
			continue
		}
		skip := map[ast.Node]bool{}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					skip[n.X], skip[n.Y] = true, true
				}
			case *ast.CaseClause:
				for _, e := range n.List {
					skip[e] = true
				}
			case *ast.KeyValueExpr:
				skip[n.Key] = true
			case *ast.GenDecl:
				return n.Tok != token.CONST
			case ast.Expr:
				if c := s.constantOf(f, n); c != nil && !skip[n] && isNode(n) && isReasonConstant(c) {
					if text := s.value(c.file, c.value); camel.MatchString(text) && !known[kindOf(f.path)+text] {
						more = append(more, choice{reason: text, file: f.path, event: strings.HasPrefix(c.name, "Event"), doc: c.meaning()})
					}
					return false
				}
			}
			return true
		})
	}
	return slices.CompactFunc(more, func(a, b choice) bool { return a == b })
}

// isNode is true for names; conversions are looked into.
func isNode(e ast.Expr) bool {
	switch e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return true
	}
	return false
}

func isReasonConstant(c *constant) bool {
	return strings.HasPrefix(c.name, "Reason") || strings.HasPrefix(c.name, "Event") || isReason(c.typ)
}
