// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// carriers says, for the types that carry a reason, where a reader meets it.
var carriers = map[string]string{
	"Wait":     "`Progressing`, `status.blockedBy`",
	"Plan":     "`Progressing`, `status.blockedBy`",
	"Decision": "`Progressing`, `status.blockedBy`",
	"standing": "`Ready`, `Reconciling`, `Stalled`",
	"Standing": "`Ready`, `Reconciling`, `Stalled`",
	"Loss":     "`QuorumLost`, `Available`, `Degraded`",
	"Record":   "`Succeeded`, `Verified`",
	"Outcome":  "`Succeeded`",
	"verdict":  "`BackupHealthy`",
}

// passedOn says where a reader meets a reason that a file chooses and passes on in a
// variable. The first match counts.
var passedOn = []struct{ path, where string }{
	{"pkg/controller/cluster/observe_etcd.go", "`status.memberStatuses`"},
	{"pkg/controller/cluster/act.go", carriers["Wait"]},
	{"pkg/planner/cluster/rule_", carriers["Wait"]},
	{"pkg/planner/cluster/pod_waits.go", carriers["Wait"]},
	{"pkg/planner/cluster/alarms.go", "`Available`, `Degraded`, `Ready`"},
	{"pkg/planner/recovery/", carriers["Wait"]},
	{"pkg/planner/cluster/condition_clients.go", "`ClientsAsDeclared`"},
	{"pkg/planner/restore/status.go", "`Progressing`"},
	{"pkg/controller/job/", "`Succeeded`, `Progressing`"},
	{"pkg/agent/", "`Succeeded`, `Progressing`"},
	{"cmd/agent/", "`Succeeded`, `Progressing`"},
}

// kinds orders the sections.
var kinds = []string{"EtcdCluster", "EtcdBackup", "EtcdRestore", "EtcdBackup and EtcdRestore"}

// kindOf returns the kind whose status a package decides.
func kindOf(file string) string {
	switch {
	case strings.Contains(file, "planner/backup/cluster"), strings.Contains(file, "controller/backup/cluster"):
		return kinds[0]
	case strings.Contains(file, "/agent"), strings.Contains(file, "objectstore"),
		strings.Contains(file, "planner/job"), strings.Contains(file, "controller/job"), strings.Contains(file, "pkg/snapshot"):
		return kinds[3]
	case strings.Contains(file, "/backup/"):
		return kinds[1]
	case strings.Contains(file, "/restore/"):
		return kinds[2]
	}
	return kinds[0]
}

// row is what a table shows of one reason of one kind.
type row struct {
	reason                 string
	where, messages, files []string
	doc                    string
}

// rows groups the choices of a kind by reason.
func rows(found []choice, kind string, events bool) []*row {
	byReason := map[string]*row{}
	var list []*row
	for _, c := range found {
		if c.event != events || kindOf(c.file) != kind || (!events && strings.HasPrefix(c.file, "pkg/etcd/")) {
			continue
		}
		r := byReason[c.reason]
		if r == nil {
			r = &row{reason: c.reason}
			byReason[c.reason] = r
			list = append(list, r)
		}
		for _, where := range strings.Split(place(c, kind), ", ") {
			r.where = appendNew(r.where, where)
		}
		r.messages = appendNew(r.messages, c.message)
		r.doc = cmp.Or(r.doc, c.doc)
		r.files = appendNew(r.files, c.file)
	}
	slices.SortFunc(list, func(a, b *row) int { return strings.Compare(a.reason, b.reason) })
	for _, r := range list {
		slices.Sort(r.where)
		slices.Sort(r.files)
	}
	return list
}

// place says where a reader meets a reason: in a condition, or in another field.
func place(c choice, kind string) string {
	if known := carriers[c.where]; known != "" {
		if kind != kinds[0] {
			known = strings.TrimSuffix(known, ", `status.blockedBy`")
		}
		return known
	}
	if !strings.Contains(c.where, "Condition") && camel.MatchString(c.where) {
		return code(c.where)
	}
	switch {
	case strings.HasPrefix(c.fn, "progress"):
		return "`Progressing`"
	case strings.Contains(c.file, "certificate"):
		return "`CertificatesValid`, `status.blockedBy`"
	case strings.Contains(c.file, "planner/backup/cluster"):
		return "`BackupHealthy`"
	}
	for _, p := range passedOn {
		if strings.HasPrefix(c.file, p.path) {
			return p.where
		}
	}
	return ""
}

func appendNew(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// meaning says what a reason means: the comment of the constant that is used, or else of a
// constant with that reason for the same kind, or for all.
func (s *source) meaning(r *row, kind, prefix string) string {
	if r.doc != "" {
		return r.doc
	}
	for _, constants := range sortedValues(s.constants) {
		for _, c := range sortedValues(constants) {
			if of := kindOf(c.file.path); of != kind && of != kinds[3] && c.file.dir != apiDir {
				continue
			}
			if c.doc != "" && isReasonConstant(c) && strings.HasPrefix(c.name, "Event") == (prefix == "Event") && s.value(c.file, c.value) == r.reason {
				return c.meaning()
			}
		}
	}
	return ""
}

// conditionsPage lists conditions and reasons.
func (s *source) conditionsPage(found []choice) string {
	var b strings.Builder
	b.WriteString(generated + `
# Conditions and reasons

Find the reason of a condition, of ` + "`status.blockedBy`" + ` or of a failed backup or restore here. The last column names the file that decides it.
An ellipsis (…) stands for a name, a number or a longer explanation. What to do about alerts: [alerts](alerts.md). What each condition is for, in
general tools: [GitOps](../how-to/gitops.md#ready-reconciling-and-stalled).
`)
	b.WriteString(s.conditionTables())
	for _, kind := range kinds {
		list := rows(found, kind, false)
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## Reasons of %s\n\n| reason | seen in | message or meaning | decided in |\n|---|---|---|---|\n", kind)
		for _, r := range list {
			text := s.meaning(r, kind, "Reason")
			for i, m := range r.messages {
				if i < 3 {
					text += "<br>“" + cell(m) + "”"
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(r.reason), strings.Join(r.where, ", "), strings.TrimPrefix(text, "<br>"), links(r.files))
		}
	}
	return b.String()
}

// conditionTables lists the conditions of each kind with the files that set them.
func (s *source) conditionTables() string {
	var b strings.Builder
	for _, kind := range kinds[:3] {
		fmt.Fprintf(&b, "\n## Conditions of an %s\n\n| condition | meaning | set in |\n|---|---|---|\n", kind)
		for _, dir := range []string{apiDir, "pkg/planner/backup", "pkg/planner/restore"} {
			for _, c := range sortedValues(s.constants[dir]) {
				ofCluster := c.typ == "ClusterConditionType"
				ofOthers := c.typ == "" && strings.HasPrefix(c.name, "Condition")
				if ofCluster && kind == kinds[0] || ofOthers && kind != kinds[0] && (dir == apiDir || kindOf(dir+"/") == kind) {
					fmt.Fprintf(&b, "| %s | %s | %s |\n", code(s.value(c.file, c.value)), cell(s.describe(c)), links(s.setters(s.value(c.file, c.value), kind)))
				}
			}
		}
	}
	return b.String()
}

// lookup is the name of a function that looks a condition up.
var lookup = regexp.MustCompile(`^(Find|Remove|Is|is|has|reported)[A-Za-z]*Condition[A-Za-z]*$`)

// statusWriter writes the status of each kind, and sets a condition about that.
const statusWriter = "pkg/controller/reconcile"

// setters returns the files that set a condition of a kind: those of the planner, and of the status writer.
// What only compares, removes or looks a condition up does not set it.
func (s *source) setters(condition, kind string) []string {
	var files []string
	for _, f := range s.files {
		of := kindOf(f.path)
		ofPlanner := strings.HasPrefix(f.dir, "pkg/planner/") && (of == kind || of == kinds[3] && kind != kinds[0])
		if !ofPlanner && f.dir != statusWriter {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				return n.Op != token.EQL && n.Op != token.NEQ
			case *ast.CallExpr:
				return !lookup.MatchString(typeName(n.Fun))
			case *ast.GenDecl:
				return n.Tok != token.CONST || n.Lparen == token.NoPos
			case ast.Expr:
				if c := s.constantOf(f, n); c != nil && isNode(n) && strings.Contains(c.name, "Condition") && s.value(c.file, c.value) == condition {
					files = appendNew(files, f.path)
				}
				return !isNode(n)
			}
			return true
		})
	}
	return files
}

// describe says what a constant of the API means: its own comment, that of the function which
// computes the condition, or that of the constant whose value it has.
func (s *source) describe(c *constant) string {
	if c.doc != "" {
		return c.meaning()
	}
	if doc := s.conditionComment(s.value(c.file, c.value)); doc != "" {
		return capital(withoutName(doc))
	}
	if k := s.constantOf(c.file, c.value); k != nil {
		return k.meaning()
	}
	return ""
}

// conditionComment returns what the function that computes a condition says of it.
func (s *source) conditionComment(name string) string {
	lower := strings.ToLower(name[:1]) + name[1:]
	for _, f := range s.files {
		if strings.HasPrefix(f.dir, "pkg/planner/") {
			if doc := functionDoc(f, lower); doc != "" {
				return doc
			}
		}
	}
	return ""
}

// eventsPage lists the reasons of events.
func (s *source) eventsPage(found []choice) string {
	var b strings.Builder
	b.WriteString(generated + `
# Events

The reasons are part of the API. ` + "`kubectl get events -n NS --field-selector involvedObject.name=NAME`" + ` shows those of one object.
An ellipsis (…) stands for a name, a number or a longer explanation.
`)
	for _, kind := range kinds {
		list := rows(found, kind, true)
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## Events of %s\n\n| reason | message | decided in |\n|---|---|---|\n", kind)
		for _, r := range list {
			text := cell(s.meaning(r, kind, "Event"))
			for i, m := range r.messages {
				if i < 3 {
					text += "<br>“" + cell(m) + "”"
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", code(r.reason), strings.TrimPrefix(text, "<br>"), links(r.files))
		}
	}
	return b.String()
}
