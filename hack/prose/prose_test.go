// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	list, err := parseWords(wordList)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]bool{
		"memberClaim": true, "claims": true, "volumeClaimTemplate": false, "PersistentVolumeClaimSpec": false,
		"newAuthority": true, "CertificateAuthority": false, "recoverySeed": false, "reseed_pod": true,
		"errForeign": true, "declaredType": false, "unvouched": true, "whose": false, "nobodyListens": true,
	} {
		if got := len(avoided(name, list)) > 0; got != bad {
			t.Errorf("name %s: avoided is %t, want %t", name, got, bad)
		}
	}
}

func TestPredicates(t *testing.T) {
	for declaration, bad := range map[string]bool{
		"func usable(p int) bool": true, "func isUsable(p int) bool": false, "func (p pod) Finished() bool": true, "func sameVersion(a, b string) bool": true,
		"func ownsPod() bool": false, "func setLabels() bool": false, "func feed() bool": false, "func mustLeave() bool": false,
		"func ready() (bool, error)": false, "func started() time": false, "func ready() (yes bool)": false,
		"// Enabled implements x.Gate.\nfunc (g gate) Enabled() bool": false, "// Enabled is true.\nfunc (g gate) Enabled() bool": true,
	} {
		_, findings, err := extractGo("p.go", []byte("package p\n\n"+declaration+" {\n}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(findings) > 0; got != bad {
			t.Errorf("%s: findings %v, want any: %t", declaration, findings, bad)
		}
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	for declaration, bad := range map[string]bool{
		"// declaredImage returns it.\nfunc desiredImage() {}": true, "// desiredImage returns it.\nfunc desiredImage() {}": false,
		"// TestOld: it works.\nfunc TestNew() {}": true, "// What a user does.\nfunc TestNew() {}": false,
		"type t interface {\n// Ready is true at the end.\nIsReady() bool\n}":                     true,
		"type t struct {\n// clusterUID is its UID.\nClusterUID string\n}":                        false,
		"const (\n// maxAnswer bounds it.\nmaxResponse = 1\n)":                                    true,
		"// MaxTries of each kind.\nconst MaxTries = 1":                                           false,
		"// EtcdCluster's name, and how often it changed.\nvar name, changes string":              false,
		"// Values of Change.\nconst (\n// ChangeAll: everything is new.\nChangeAll = \"All\"\n)": false,
	} {
		_, findings, err := extractGo("p.go", []byte("package p\n\n"+declaration+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(findings) > 0; got != bad {
			t.Errorf("%s: findings %v, want any: %t", declaration, findings, bad)
		}
	}
}

func TestTestNames(t *testing.T) {
	t.Parallel()
	for body, bad := range map[string]bool{
		`_ = []row{{"then the next", 1}}`: true, `_ = []row{{"the next member follows", 1}}`: false, `_ = map[string]row{"nor one that ends": {1}}`: true,
		`t.Run("and again", nil)`: true, `t.Errorf("and again: %v", nil)`: false, `_ = map[string]row{"android": {1}}`: false,
		`_ = []string{"such as a list", "of words"}`: false,
	} {
		for path, want := range map[string]bool{"p_test.go": bad, "p.go": false} {
			_, findings, err := extractGo(path, []byte("package p\n\nfunc f() { "+body+" }\n"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(findings) > 0; got != want {
				t.Errorf("%s: %s: findings %v, want any: %t", path, body, findings, want)
			}
		}
	}
}

func TestGoProse(t *testing.T) {
	const file = `package p

import "fmt"

// Doc of f. It has
// two lines.
//
//nolint:unused // an explanation follows
func f() error {
	return fmt.Errorf("the member %s does not "+
		"respond: %w", "single", nil)
}
`
	blocks, findings, err := extractGo("p.go", []byte(file), nil)
	if err != nil || len(findings) > 0 {
		t.Fatalf("findings %v, error %v", findings, err)
	}
	var got []string
	for _, b := range blocks {
		var lines []string
		for _, l := range b {
			lines = append(lines, l.text)
		}
		got = append(got, strings.Join(lines, "/"))
	}
	want := []string{"Doc of f. It has/two lines.//an explanation follows", "the member X does not/respond: X"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if last := blocks[1]; last[0].number != 10 || last[1].number != 11 {
		t.Errorf("message at lines %d and %d, want 10 and 11", last[0].number, last[1].number)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	got := document("| `--flag` | <q>Serve not.</q> |\n| Ends soon.<br>“pod … exists”<br>more |")
	want := block{{1, "| `--flag` |  |"}, {2, "| Ends soon. “pod … exists”. more |"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFences(t *testing.T) {
	t.Parallel()
	page := strings.Join([]string{
		"Text.", "```", "pkg/a   Services, PVCs", "(no) ──▶ pod lost │ x", "```",
		"```sh", "make up  # takes minutes", "```",
		"<!-- output -->", "", "```", "two printed words", "```",
		"```", "$ kubectl get", "two printed words", "```",
		"````", "```", "two words", "```", "````",
		"```json", "two printed words", "```",
	}, "\n")
	want := []line{{3, "Services, PVCs"}, {4, "pod lost"}, {7, "takes minutes"}, {20, "two words"}}
	var got []line
	for _, b := range fenced(page) {
		got = append(got, b...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDescriptionsOfYAML(t *testing.T) {
	blocks := descriptions("a:\n  summary: One line\n  expr: a b c\n  description: >-\n    Two\n    lines\n  other: x y\n")
	if len(blocks) != 2 || len(blocks[1]) != 2 || blocks[1][0].number != 5 {
		t.Errorf("blocks: %v", blocks)
	}
	blocks = descriptions("deny:\n  - {pkg: net, desc: \"no network here\"}\n")
	if len(blocks) != 1 || blocks[0][0] != (line{2, "no network here"}) {
		t.Errorf("blocks of a map on one line: %v", blocks)
	}
}

func TestCommentsOfScripts(t *testing.T) {
	blocks := hashComments("#!/bin/sh\n# One\n# block.\nx=1 # Another block.\ny=${#x}\n")
	if len(blocks) != 2 || len(blocks[0]) != 2 || blocks[1][0] != (line{4, "Another block."}) {
		t.Errorf("blocks: %v", blocks)
	}
}
