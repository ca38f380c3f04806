// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package waits_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/planner/restore"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// TestEveryRowIsComplete: no wait is without bound, and no remedy says only that no action is needed.
func TestEveryRowIsComplete(t *testing.T) {
	t.Parallel()
	for kind, table := range map[string]waits.Table{"EtcdCluster": cluster.Waits, "EtcdBackup": backup.Waits, "EtcdRestore": restore.Waits} {
		for reason, row := range table {
			if row.Bound < waits.Soon || row.Bound > waits.Transfer || row.For == "" || row.EndedBy == "" {
				t.Errorf("%s: row of %s: %+v", kind, reason, row)
			}
			if remedy := row.RemedyOf(diagnosis.NoActionYet, true); remedy == "" || strings.Contains(remedy, diagnosis.NoActionYet) {
				t.Errorf("%s: remedy of %s: %q", kind, reason, remedy)
			}
		}
	}
}

// TestEveryReasonToWaitHasARow reads the reasons of the sources: those of the blocks of constants whose
// comment says that they are reasons to wait.
func TestEveryReasonToWaitHasARow(t *testing.T) {
	t.Parallel()
	for file, test := range map[string]struct {
		block string
		table waits.Table
	}{
		"../cluster/reasons.go":      {"Reasons of status.blockedBy", cluster.Waits},
		"../recovery/decision.go":    {"Reasons to wait", cluster.Waits},
		"../certificates/reasons.go": {"Reasons of the condition CertificatesValid", cluster.Waits},
		"../../diagnosis/loss.go":    {"Reasons", cluster.Waits},
		"../backup/reasons.go":       {"Reasons to wait", backup.Waits},
		"../restore/reasons.go":      {"Reasons to wait", restore.Waits},
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, d := range tree.Decls {
			block, ok := d.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST || !strings.HasPrefix(block.Doc.Text(), test.block) {
				continue
			}
			for _, spec := range block.Specs {
				value, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				if value.Names[0].Name == "ReasonAllUsable" {
					break // the reasons after it do not block
				}
				literal, ok := value.Values[0].(*ast.BasicLit)
				if !ok {
					continue // a constant of another package, whose own block is read
				}
				found++
				if reason := strings.Trim(literal.Value, `"`); test.table[reason].Remedy == "" {
					t.Errorf("%s: %s has no row in Waits", file, reason)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: no reason found", file)
		}
	}
}

// TestCopiesGetMoreTime: what copies a large database is not stalled while it may still copy.
func TestCopiesGetMoreTime(t *testing.T) {
	t.Parallel()
	const gibibyte = 1 << 30
	if got, want := waits.Copy("", "", time.Minute, "").Patience(gibibyte), time.Minute+512*time.Second; got != want {
		t.Errorf("a copy of 1 GiB may take %v, want %v", got, want)
	}
	if got := waits.New("", "", time.Minute, "").Patience(gibibyte); got != time.Minute {
		t.Errorf("what copies nothing may take %v", got)
	}
}

// TestRemedyOfAStalledWait: a wait that lasts too long says what to do.
func TestRemedyOfAStalledWait(t *testing.T) {
	t.Parallel()
	row := waits.New("", "", time.Minute, "Do it.")
	for _, test := range []struct {
		remedy  string
		tooLong bool
		want    string
	}{
		{diagnosis.NoActionYet, false, diagnosis.NoActionYet},
		{diagnosis.NoActionYet, true, "Do it."},
		{diagnosis.NoActionYet + " See that.", true, "See that."},
		{"Do that.", true, "Do that."},
		{"", true, "Do it."},
	} {
		if got := row.RemedyOf(test.remedy, test.tooLong); got != test.want {
			t.Errorf("%q, too long %t: %q, want %q", test.remedy, test.tooLong, got, test.want)
		}
	}
}
