// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unmarked are one object of each kind that lack their marks.
func unmarked(o *Observed) {
	o.Unlabeled = []Object{
		{KindPod, "a", "pod-a"}, {KindPVC, "a", "claim-a"}, {KindService, "c", "s"}, {KindBudget, "c", "b"}, {KindSecret, "c-ca-tls", "x"},
	}
}

func marksOf(p Plan) []string {
	var list []string
	for _, a := range p.Actions {
		switch a := a.(type) {
		case LabelObject:
			list = append(list, string(a.Kind))
		case AddFinalizer:
			list = append(list, "finalizer")
		}
	}
	return list
}

// TestMarks: objects are marked at any time but while the cluster is being deleted, and the
// finalizer is put on it before anything else is done. What the upkeep repairs anyway is
// not written twice.
func TestMarks(t *testing.T) {
	t.Parallel()
	all := []string{"pod", "PVC", "service", "pod disruption budget", "secret"}
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  []string
	}{
		"at rest":                    {edits(unmarked), []string{"pod", "pod disruption budget", "secret"}},
		"paused":                     {edits(unmarked, pausedSpec), all},
		"name conflict":              {edits(unmarked, func(o *Observed) { o.PeerService = NotOwned }), all},
		"being deleted":              {edits(unmarked, deleting), nil},
		"without finalizer":          {edits(unheld), []string{"finalizer"}},
		"paused without finalizer":   {edits(unheld, pausedSpec), []string{"finalizer"}},
		"being deleted without":      {edits(unheld, deleting), nil},
		"marks come before":          {edits(unheld, unmarked, pausedSpec), append(all[:5:5], "finalizer")},
		"a PVC that no member keeps": {edits(func(o *Observed) { o.Unlabeled = []Object{{KindPVC, "prepared", "x"}} }), []string{"PVC"}},
	} {
		plan := Decide(observed(t, 3, "a:claim b:claim c:claim", test.edits...))
		if diff := cmp.Diff(test.want, marksOf(plan)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	plan := Decide(observed(t, 3, "a:claim b:claim c:claim", unheld, func(o *Observed) { o.PeerService = Missing }))
	if _, first := plan.Actions[0].(AddFinalizer); !first {
		t.Errorf("something is created before the finalizer is on the cluster: %+v", plan.Actions)
	}
}
