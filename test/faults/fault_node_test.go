// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// newToolStage returns a stage with two ready nodes, whose faults are made by a program that
// only notes its arguments. The program fails if they contain a text. The function reads the notes.
func newToolStage(t *testing.T, failing string) (*stage, func() []string) {
	t.Helper()
	dir := t.TempDir()
	notes, program := filepath.Join(dir, "notes"), filepath.Join(dir, "local")
	script := "#!/bin/sh\necho \"$@\" >>" + notes + "\ncase \"$*\" in " + failing + ") exit 1 ;; esac\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	kube := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: ready},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Status: ready},
	)
	s := &stage{env: &harness.Environment{Local: program, Kube: kube}, target: membersOn("n1")[0]}
	return s, func() []string {
		text, err := os.ReadFile(notes)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

func TestNodeFaultIsUndone(t *testing.T) {
	s, notes := newToolStage(t, "never")
	end, err := nodeFault("kill", "start")(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := end(t.Context()); err != nil {
		t.Error(err)
	}
	if got := strings.Join(notes(), ", "); got != "node kill n1, node start n1" {
		t.Errorf("the calls are %q", got)
	}
}

func TestNodeFaultThatFailsIsUndone(t *testing.T) {
	s, notes := newToolStage(t, "*kill*")
	if _, err := nodeFault("kill", "start")(t.Context(), s); err == nil {
		t.Error("the fault has begun")
	}
	if got := strings.Join(notes(), ", "); got != "node kill n1, node start n1" {
		t.Errorf("the calls are %q", got)
	}
}

func TestRulesAreDeletedFromEachNode(t *testing.T) {
	rules := []rule{{"iptables", "INPUT -s a"}, {"ip6tables", "INPUT -s b"}}
	for name, test := range map[string]struct{ failing, calls string }{
		"undone":                    {"never", "add n1, add n2, delete n1, delete n2"},
		"the second node fails":     {"*n2*-I*", "add n1, add n2, delete n1, delete n2"},
		"a node cannot delete them": {"*n1*-D*", "add n1, add n2, delete n1, delete n2"},
	} {
		t.Run(name, func(t *testing.T) {
			s, notes := newToolStage(t, test.failing)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			end, err := filter(ctx, s, []string{"n1", "n2"}, rules)
			if err == nil {
				err = end(ctx)
			}
			if (err == nil) != (test.failing == "never") {
				t.Errorf("the error is %v", err)
			}
			var calls []string
			for _, note := range notes() {
				call := "add "
				if strings.Contains(note, " -D ") {
					call = "delete "
				}
				calls = append(calls, call+strings.Fields(note)[2])
				if !strings.Contains(note, "iptables -w -") || !strings.Contains(note, "ip6tables -w -") {
					t.Errorf("a rule is missing in %q", note)
				}
			}
			if got := strings.Join(calls, ", "); got != test.calls {
				t.Errorf("the calls are %q, not %q", got, test.calls)
			}
		})
	}
}
