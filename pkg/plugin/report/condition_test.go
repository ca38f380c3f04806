// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// conditionTypes reads the types of conditions of the three kinds from the sources that declare them.
func conditionTypes(t *testing.T) []string {
	t.Helper()
	var types []string
	for _, pattern := range []string{"../../apis/etcd/v1beta2/types_*.go", "../../planner/backup/status.go", "../../planner/restore/status.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			types = append(types, conditionsIn(t, file)...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// conditionName is how constants of types of conditions are called.
var conditionName = regexp.MustCompile(`^(Cluster)?Condition[A-Z]`)

func conditionsIn(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		for i, name := range spec.Names {
			if !conditionName.MatchString(name.Name) || i >= len(spec.Values) {
				continue
			}
			if literal, is := spec.Values[i].(*ast.BasicLit); is {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, text)
			}
		}
		return true
	})
	return types
}

// TestEveryConditionHasAMeaning: a new type of condition needs a row in the table that says which status
// is the usual one. Without it, nothing shows its faults.
func TestEveryConditionHasAMeaning(t *testing.T) {
	types := conditionTypes(t)
	for _, must := range []string{"Ready", "ClientsAsDeclared", "OnCordonedNode", "RetentionApplied", "Verified"} {
		if !slices.Contains(types, must) {
			t.Errorf("the sources do not declare %s: %q", must, types)
		}
	}
	for _, kind := range types {
		if usual := v1beta2.UsualStatus(kind); usual != corev1.ConditionTrue && usual != corev1.ConditionFalse {
			t.Errorf("%s has no usual status", kind)
		}
	}
}

// TestFaultsOfEachCondition: its usual status is never shown, and every other one is, as a fault or as
// work.
func TestFaultsOfEachCondition(t *testing.T) {
	for _, kind := range conditionTypes(t) {
		for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
			s := plugintest.Healthy()
			s.Condition(v1beta2.ClusterConditionType(kind), status, "R", "")
			faults, work := types(report.Faults(s.Cluster)), types(report.Work(s.Cluster))
			shown := slices.Concat(faults, work)
			if status == v1beta2.UsualStatus(kind) {
				if len(shown) != 0 {
					t.Errorf("%s is %s, as usual, and %v is shown", kind, status, shown)
				}
				continue
			}
			if len(shown) != 1 || string(shown[0]) != kind || (len(work) == 1) != v1beta2.IsWork(kind) {
				t.Errorf("%s is %s: faults %v, work %v", kind, status, faults, work)
			}
		}
	}
	s := plugintest.Healthy()
	s.Condition("example.com/Audited", corev1.ConditionTrue, "R", "")
	if shown := report.Faults(s.Cluster); len(shown) != 0 {
		t.Errorf("a condition of another author is a fault: %v", shown)
	}
}

// TestStatesHaveTheirFaults: what the screens show of each state.
func TestStatesHaveTheirFaults(t *testing.T) {
	want := map[string][]v1beta2.ClusterConditionType{
		"degraded": {"Degraded"}, "quorum-lost": {"QuorumLost"}, "full": {"Available"},
	}
	for name, s := range plugintest.States() {
		s.Condition(v1beta2.ClusterConditionClientsAsDeclared, corev1.ConditionTrue, "AsDeclared", "")
		if got := types(report.Faults(s.Cluster)); !slices.Equal(got, want[name]) {
			t.Errorf("%s: faults %v, want %v", name, got, want[name])
		}
	}
}
