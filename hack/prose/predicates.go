// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

// adjective matches the first word of names that read as a property: participles, words such as
// usable and lossless, and the short adjectives that this code has used. "Need" and "bring" are
// verbs.
var adjective = regexp.MustCompile(`^([a-z]*[^e]ed|[a-z]{2,}ing|[a-z]+[ai]ble|[a-z]+less|alive|atrest|away|below|broken|calm|complete|empty|final|first|good|gone|held|hidden|kept|late|lost|made|near|newer|other|over|overdue|periodic|persistent|ready|same|secure|stale|unborn)$`)

// checkPredicate checks the name of a function that only tells whether something is true. A reader
// takes "usable(pod)" for a value and "isUsable(pod)" for a question. Verbs are fine: they are
// questions, too ("ownsPod"), or do something and tell whether that changed anything ("setLabels").
// A method whose comment says that it implements an interface has its name from there.
func (n *names) checkPredicate(d *ast.FuncDecl) {
	results := d.Type.Results
	if results == nil || len(results.List) != 1 || len(results.List[0].Names) > 0 {
		return
	}
	if kind, ok := results.List[0].Type.(*ast.Ident); !ok || kind.Name != "bool" {
		return
	}
	first, _, _ := strings.Cut(strings.ToLower(strings.Join(splitWords(d.Name.Name), " ")), " ")
	if adjective.MatchString(first) && first != "bring" && !strings.Contains(d.Doc.Text(), " implements ") {
		n.findings = append(n.findings, finding{
			path: n.path, line: n.set.Position(d.Name.Pos()).Line, rule: "Plain.Predicates",
			message: fmt.Sprintf("name %s: begin with is, has, can or a verb", d.Name.Name),
		})
	}
}
