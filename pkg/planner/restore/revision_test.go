// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// takenOver has the cluster hold the data of an earlier restore.
func takenOver(name string, revision, bump int64) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Restores = append([]v1beta2.ClusterRestore{{
			Name: name, UID: "uid-" + name, Revision: revision, RevisionBump: bump, Time: ptr.To(metav1.NewTime(epoch.Add(-time.Hour))),
		}}, o.Cluster.Status.Restores...)
	}
}

// stored has the pre-restore backup hold a revision.
func stored(revision int64) func(*Observed) {
	return func(o *Observed) { o.Restore.Status.PreRestoreBackup.Revision = revision }
}

// nothingLeft has no member respond, and nothing exist of any: no pre-restore backup is made.
func nothingLeft(o *Observed) {
	o.Restore.Status.PreRestoreBackup = nil
	quorumLost(time.Hour)(o)
}

func lastBackup(revision int64) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.LastBackup = &v1beta2.LastBackup{Name: "nightly", Revision: revision}
	}
}

// recoveredBefore has the last of several recoveries of survivors in the status.
func recoveredBefore(o *Observed) {
	o.Cluster.Status.Recovery = &v1beta2.RecoveryStatus{
		ID: "survivor", Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhaseSucceeded, RevisionBump: 1_000_000_000,
	}
}

func bumps(by int64) func(*Observed) {
	return func(o *Observed) { o.Restore.Spec.RevisionBump = &by }
}

// TestTheRevisionNeverGoesBack: a restore leads above each revision that clients may have seen. Those that watch from a
// revision above that of the cluster get neither an event nor an error.
func TestTheRevisionNeverGoesBack(t *testing.T) {
	t.Parallel()
	const raised = int64(1_000_000_000)
	for name, test := range map[string]struct {
		backup int64
		edits  []func(*Observed)
		// seen is the highest revision that the cluster has had.
		seen int64
	}{
		"for the first time":                           {4000, []func(*Observed){stored(5000)}, 5000},
		"an older backup than before":                  {3000, []func(*Observed){takenOver("first", 4000, raised), stored(raised + 4500)}, raised + 4500},
		"an older one, and nothing is left":            {3000, []func(*Observed){takenOver("first", 4000, raised), nothingLeft}, raised + 4500},
		"the same backup, another name":                {4000, []func(*Observed){takenOver("first", 4000, raised), stored(raised + 4100)}, raised + 4100},
		"the members are lost before the next backup":  {4000, []func(*Observed){takenOver("first", 4000, raised), lastBackup(4000), nothingLeft}, raised + 4500},
		"a backup from before a recovery":              {4000, []func(*Observed){recoveredBefore, stored(raised + 5000)}, raised + 5000},
		"from before recoveries, and nothing is left":  {4000, []func(*Observed){recoveredBefore, lastBackup(4000), nothingLeft}, 5*raised + 5000},
		"the last backup is of after the recoveries":   {4000, []func(*Observed){recoveredBefore, lastBackup(5*raised + 4500), nothingLeft}, 5*raised + 5000},
		"the pre-restore backup of an earlier restore": {5000, []func(*Observed){takenOver("first", 3000, raised), stored(raised + 9000)}, raised + 9000},
		"only an earlier EtcdRestore tells": {4000, []func(*Observed){nothingLeft, func(o *Observed) {
			o.Others = []*v1beta2.EtcdRestore{{Status: v1beta2.RestoreStatus{PreRestoreBackup: &v1beta2.PreRestoreBackup{Revision: 7 * raised}}}}
		}}, 7*raised + 500},
		"an earlier one was raised by a user": {4000, []func(*Observed){takenOver("second", 3000, 0), takenOver("first", 3000, 900_000*raised), stored(5000)}, 900_000*raised + 3000},
		"the backup is the newer one":         {9 * raised, []func(*Observed){takenOver("first", 4000, raised), stored(raised + 4500)}, 9 * raised},
	} {
		found := good()
		found.Revision = test.backup
		plan := Decide(observed(append(test.edits, held, checked(1, found))...))
		if plan.Recovery == nil {
			t.Errorf("%s: %s", name, say(plan))
			continue
		}
		if got := test.backup + plan.Recovery.RevisionBump; got <= test.seen {
			t.Errorf("%s: continues at %d, and clients have seen %d", name, got, test.seen)
		}
		if told := plan.Restores[0]; told.Revision != test.backup || told.RevisionBump != plan.Recovery.RevisionBump {
			t.Errorf("%s: the status tells of %+v", name, told)
		}
		if strings.Contains(plan.Recovery.ExpectedLoss, "given again") {
			t.Errorf("%s: %s", name, plan.Recovery.ExpectedLoss)
		}
	}
}

// TestDefaultBump: a restore that was abandoned has not raised the revision, a wrong status causes no overflow, and what a
// user requests stays. ExpectedLoss says when that gives revisions again.
func TestDefaultBump(t *testing.T) {
	t.Parallel()
	abandoned := func(o *Observed) {
		o.Cluster.Status.Restores = []v1beta2.ClusterRestore{{Name: "abandoned", UID: "uid-abandoned", Revision: 4000, RevisionBump: defaultBump}}
	}
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  int64
		again bool
	}{
		"nothing was written since the backup": {[]func(*Observed){stored(42)}, defaultBump, false},
		"some was":                             {[]func(*Observed){stored(50)}, defaultBump + 8, false},
		"no pre-restore backup":                {[]func(*Observed){nothingLeft}, unseenBump, false},
		"an abandoned restore":                 {[]func(*Observed){abandoned}, defaultBump + 8, false},
		"a wrong status":                       {[]func(*Observed){takenOver("first", 1, math.MaxInt64-1)}, maxKnown - 42 + defaultBump, false},
		"a sum that overflows":                 {[]func(*Observed){takenOver("first", 2, math.MaxInt64)}, defaultBump + 8, false},
		"a new cluster":                        {[]func(*Observed){filling, lastBackup(50)}, 0, false},
		"requested, and enough":                {[]func(*Observed){stored(50), bumps(8)}, 8, false},
		"requested, and too little":            {[]func(*Observed){stored(50), bumps(7)}, 7, true},
		"requested for a new cluster":          {[]func(*Observed){filling, bumps(7)}, 7, false},
	} {
		plan := Decide(observed(append(test.edits, held, checked(1, good(), func(j *Job) {
			o := observed(test.edits...)
			j.Target = o.target().String()
		}))...))
		if plan.Recovery == nil {
			t.Errorf("%s: %s", name, say(plan))
			continue
		}
		if got := plan.Recovery; got.RevisionBump != test.want || strings.Contains(got.ExpectedLoss, "given again") != test.again {
			t.Errorf("%s: raised by %d, want %d; %s", name, got.RevisionBump, test.want, got.ExpectedLoss)
		}
	}
}
