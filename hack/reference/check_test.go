// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// whole are files of a module whose pages have no defect.
var whole = map[string]string{
	"README.md":                         "# Name\n\nRead the [page](docs/page.md#a-heading).\n",
	"docs/page.md":                      "# Page\n\n## A heading\n\n```sh\n# no heading\n```\n",
	"docs/architecture.md":              "| concept | file |\n|---|---|\n| planning | `pkg/plan.go`, `rules.go` |\n",
	"pkg/plan.go":                       "package pkg\n",
	"pkg/rules.go":                      "package pkg\n",
	"artifacts/monitoring/alerts.yaml":  "groups:\n  - rules:\n      - alert: Lost\n",
	"artifacts/install/controller.yaml": "args:\n  - /controller\n  - --leader-elect\n",
	"docs/reference/alerts.md":          "# Alerts\n\n## Lost\n",
	"docs/reference/flags.md":           "| flag | default | meaning |\n|---|---|---|\n| `--leader-elect` | | is explained |\n",
	"docs/reference/conditions.md":      "| reason | meaning |\n|---|---|\n| `Lost` | It is lost. |\n",
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page, text string
		want       string // part of the only error; empty: there is none
	}{
		"nothing is wrong":             {},
		"link to no file":              {"README.md", "[page](docs/gone.md)", "docs/gone.md does not exist"},
		"link to no heading":           {"README.md", "[page](docs/page.md#gone)", "docs/page.md#gone has no such heading"},
		"heading in a code fence":      {"README.md", "[page](docs/page.md#no-heading)", "has no such heading"},
		"link in a code fence":         {"README.md", "```\n[page](docs/gone.md)\n```\n", ""},
		"table without the path":       {"docs/architecture.md", "| concept | file |\n|---|---|\n| planning | `pkg/gone.go` |\n", "pkg/gone.go does not exist (planning)"},
		"table without the bare name":  {"docs/architecture.md", "| concept | file |\n|---|---|\n| planning | `pkg/plan.go`, `gone.go` |\n", "gone.go does not exist (planning)"},
		"architecture without a table": {"docs/architecture.md", "# Architecture\n", "is missing"},
		"alert without a runbook":      {"docs/reference/alerts.md", "# Alerts\n", "alert Lost has no runbook"},
		"runbook without an alert":     {"docs/reference/alerts.md", "## Lost\n\n## Found\n", "Found is not an alert"},
		"empty cell":                   {"docs/reference/conditions.md", "| reason | meaning |\n|---|---|\n| `Lost` |  |\n", "the row of `Lost` has an empty cell"},
		"cell with a vertical bar":     {"docs/reference/conditions.md", "| `Lost` | \\| |\n", ""},
		"flag that is not documented":  {"artifacts/install/controller.yaml", "args:\n  - /controller\n  - --gone\n", "flag --gone"},
		"sentence that is too long":    {"README.md", strings.Repeat("word ", longestSentence+1), "a sentence of 31 words"},
		"long sentence in a list":      {"README.md", "- short.\n- **Long.** " + strings.Repeat("word ", longestSentence) + "\n  word.\n", "a sentence of 31 words"},
		"long sentence in a table":     {"README.md", "| a | " + strings.Repeat("word ", longestSentence+1) + "|\n", "a sentence of 31 words"},
		"long sentence with a colon":   {"README.md", strings.Repeat("word ", longestSentence) + "word: word.", "a sentence of 32 words"},
		"sentences that are not long":  {"README.md", strings.Repeat("word ", longestSentence) + "\n- " + strings.Repeat("word ", longestSentence-1) + "word. Word?\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(whole)
			if c.page != "" {
				files[c.page] = c.text
			}
			root := t.TempDir()
			for path, text := range files {
				write(t, filepath.Join(root, path), text)
			}
			err := check(root, []string{"README.md", "docs/page.md", "docs/architecture.md"})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("unexpected defects: %v", err)
			case c.want != "" && err == nil:
				t.Errorf("no defect found, want %q", c.want)
			case c.want != "" && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("defects %q, want only %q", err, c.want)
			}
		})
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "pkg/planner/cluster/rule.go"), `package cluster

type Reason string

type AddReason string

const (
	// ReasonLost: a member is lost. Ends when it is back.
	ReasonLost Reason = "Lost"
	// AddMissing is known to the planner only.
	AddMissing AddReason = "Missing"
)

type Wait struct {
	Reason  Reason
	Message string
}

// ConditionGood: all is well.
const ConditionGood = "Good"

func conditions() {
	set := func(condition, reason string) {}
	set(ConditionGood, string(ReasonLost))
}

func rule() (Wait, AddReason) {
	reason := AddMissing
	return Wait{Reason: ReasonLost, Message: "member " + name() + " is lost"}, reason
}
`)
	write(t, filepath.Join(root, "pkg/planner/backup/status.go"), `package backup

// Conditions of an EtcdBackup.
const (
	// ConditionStored: it is stored.
	ConditionStored = "Stored"
)

func status() { set(ConditionStored, "True") }
`)
	write(t, filepath.Join(root, "pkg/planner/backup/ready.go"), `package backup

func isReady(c condition) bool { return FindStatusCondition(ConditionStored) != nil && c.Type == ConditionStored }
`)
	src, err := load(root, "pkg")
	if err != nil {
		t.Fatal(err)
	}
	page := src.conditionsPage(src.find())
	const stored = "| `Stored` | It is stored. | [pkg/planner/backup/status.go](../../pkg/planner/backup/status.go) |"
	if !strings.Contains(page, stored) {
		t.Errorf("the page lacks %q:\n%s", stored, page)
	}
	const want = "| `Lost` | `Good`, `Progressing`, `status.blockedBy` | A member is lost. Ends when it is back.<br>“member … is lost” |"
	if !strings.Contains(page, want) {
		t.Errorf("the page lacks %q:\n%s", want, page)
	}
	if strings.Contains(page, "Missing") {
		t.Errorf("the page has a reason that no object shows:\n%s", page)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
