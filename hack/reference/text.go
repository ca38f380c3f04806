// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// generated is the first line of every page.
const generated = "<!-- Written by hack/update-docs.sh from the Go sources. Do not edit. -->\n"

// maxMessage is how much of a message a table shows, in characters.
const maxMessage = 150

var verbs = regexp.MustCompile(`%[-+#0-9.\[\]*]*[a-zA-Z]`)

// wholeMessage renders an expression that makes a text: what is constant as it is, and the rest
// as an ellipsis.
func (s *source) wholeMessage(f *file, e ast.Expr) string {
	text := strings.Join(strings.Fields(verbs.ReplaceAllString(s.parts(f, e), "…")), " ")
	return strings.ReplaceAll(text, "……", "…")
}

// message renders an expression for a cell of a table: as wholeMessage, but not longer than
// maxMessage.
func (s *source) message(f *file, e ast.Expr) string {
	text := s.wholeMessage(f, e)
	if runes := []rune(text); len(runes) > maxMessage {
		text = strings.TrimSpace(string(runes[:maxMessage])) + " …"
	}
	if strings.Trim(text, "…:; ") == "" {
		return ""
	}
	return text
}

func (s *source) parts(f *file, e ast.Expr) string {
	if text := s.value(f, e); text != "" {
		return text
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return s.parts(f, e.X) + s.parts(f, e.Y)
		}
	case *ast.ParenExpr:
		return s.parts(f, e.X)
	case *ast.CallExpr:
		switch name := typeName(e.Fun); {
		case (name == "Sprintf" || name == "Errorf" || name == "New") && len(e.Args) > 0:
			return s.parts(f, e.Args[0])
		case name == "Or":
			for _, arg := range e.Args {
				if text := s.parts(f, arg); strings.Trim(text, "… ") != "" {
					return text
				}
			}
		}
	case *ast.BasicLit:
		if e.Value == `""` || e.Value == "``" {
			return ""
		}
	}
	return "…"
}

// cell makes a text fit into a table.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = strings.NewReplacer("|", "\\|", "<", "&lt;", ">", "&gt;", "*", "\\*").Replace(text)
	return text
}

// code marks a text as code.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", "\\|") + "`"
}

// link links to a file of the repository from docs/reference.
func link(path string) string { return "[" + path + "](../../" + path + ")" }

func links(paths []string) string {
	const most = 4
	list := make([]string, 0, len(paths))
	for i, p := range paths {
		if i == most {
			list = append(list, "…")
			break
		}
		list = append(list, link(p))
	}
	return strings.Join(list, "<br>")
}

// capital begins a text with a capital letter.
func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
