// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/etcd-operator/etcd-operator/test/pages"
)

// TestPagesOfDocs: the marks of all pages are right, and bash can read the commands. Each how-to page with commands runs some as
// a test, or says why not.
func TestPagesOfDocs(t *testing.T) {
	folders, err := pages.ReadAll(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]int{}
	for folder, list := range folders {
		for _, page := range list {
			steps[folder] += len(page.Steps)
			for _, step := range page.Steps {
				if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(step.Commands), ""); err != nil {
					t.Errorf("line %d of page %s: %v", step.Line, page.Name, err)
				}
			}
			if err := page.Check(); err != nil && folder == "how-to" {
				t.Error(err)
			}
		}
	}
	if len(folders["how-to"]) < 20 || steps["how-to"] < 20 || steps["start"] == 0 {
		t.Errorf("only %d how-to pages with %v blocks were found", len(folders["how-to"]), steps)
	}
	if steps["contributing"] != 0 {
		t.Errorf("examples of docs/contributing count as tests: %v", steps)
	}
}

// read reads a page with quotes in place of backquotes.
func read(t *testing.T, text string) (*pages.Page, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "'", "`")), 0o600); err != nil {
		t.Fatal(err)
	}
	return pages.Read(file)
}

func TestRead(t *testing.T) {
	page, err := read(t, `# Page
<!-- setup
NAME=example

-->
<!-- test -->
'''sh
one
'''
<!-- output -->
'''
a
b
'''
1. In a list:

   <!-- test -->
   '''sh
   two <<EOF
     indented
   EOF
   '''
'''sh
not marked
'''
''''markdown
<!-- test -->
'''sh
an example
'''
''''
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []pages.Step{
		{Line: 3, Commands: "NAME=example\n\n"},
		{Line: 8, Commands: "one\n", Output: "a\nb\n"},
		{Line: 19, Commands: "two <<EOF\n  indented\nEOF\n"},
	}
	if page.Name != "page" || !page.HasCommands || !reflect.DeepEqual(page.Steps, want) {
		t.Errorf("unexpected %+v", page)
	}
	if err := page.Check(); err != nil {
		t.Error(err)
	}
}

func TestReadRejects(t *testing.T) {
	for name, text := range map[string]string{
		"a mark without a block":     "<!-- test -->\n\n'''sh\none\n'''\n",
		"an unknown mark":            "<!-- tests -->\n'''sh\none\n'''\n",
		"an output without commands": "<!-- output -->\n'''\none\n'''\n",
		"commands that are no shell": "<!-- test -->\n'''yaml\none: 1\n'''\n",
		"a block without an end":     "<!-- test -->\n'''sh\none\n",
		"a reason without words":     "<!-- no test: -->\n'''sh\none\n'''\n",
		"a setup without an end":     "<!-- setup\none\n",
	} {
		if _, err := read(t, text); !errors.Is(err, pages.ErrMark) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheck(t *testing.T) {
	const commands, marked, reason = "'''sh\none\n'''\n", "<!-- test -->\n", "<!-- no test: it removes a node -->\n"
	for text, good := range map[string]bool{
		"prose\n":                                 true,
		"'''yaml\none: 1\n'''\n":                  true,
		marked + commands:                         true,
		reason + commands:                         true,
		commands:                                  false,
		"'''\nkubectl get etcd\n'''\n":            false,
		"1. one\n\n   '''sh\n   one\n   '''\n":    false,
		reason + marked + commands:                false,
		"'''\n$ kubectl get etcd\nNAME  x\n'''\n": true,
	} {
		page, err := read(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if err := page.Check(); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFill(t *testing.T) {
	values := map[string]string{"NS": "e2e", "NAME": "main", "MEMBER": "main-x"}
	for commands, want := range map[string]string{
		"kubectl etcd status NAME -n NS":                               "kubectl etcd status main -n e2e",
		"kubectl etcd snapshot save $NAME MEMBER.db --member MEMBER":   "kubectl etcd snapshot save $NAME main-x.db --member main-x",
		"NS=default NAME=example":                                      "NS=e2e NAME=example",
		`echo '{"spec":{"members":["MEMBER"]}}' | f "${NAME}" MY_NAME`: `echo '{"spec":{"members":["main-x"]}}' | f "${NAME}" MY_NAME`,
		"kubectl get leases -o custom-columns=NS:.metadata.namespace":  "kubectl get leases -o custom-columns=NS:.metadata.namespace",
		"kubectl drain NODE":                                           "kubectl drain NODE",
		"kubectl etcd restore NAME -n NS # asks":                       "kubectl etcd restore --yes main -n e2e # asks",
		"kubectl etcd recover $NAME":                                   "kubectl etcd recover --yes $NAME",
		"kubectl etcd backup NAME":                                     "kubectl etcd backup main",
	} {
		if got := pages.Fill(commands, values); got != want {
			t.Errorf("%s became %s, want %s", commands, got, want)
		}
	}
}

func TestMissing(t *testing.T) {
	const printed = "etcd/main-k8v9xz2qfl   condition met\nBackup main-1 of ns/main is done: revision 12, 20Ki at /x, verified by Hash.  00:08\n"
	for expected, missing := range map[string]int{
		"":                                   0,
		"etcd/main-bcdfghjklm condition met": 0,
		"Backup … of …/main is done: revision 2, … verified by Hash.": 0,
		"verified by Hash … Backup":                                   1,
		"not printed\ncondition met\nneither":                         2,
	} {
		if got := pages.Missing(expected, printed); len(got) != missing {
			t.Errorf("%q: missing are %q, want %d", expected, got, missing)
		}
	}
}
