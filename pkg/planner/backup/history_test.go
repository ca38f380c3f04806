// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestHoldsOutlastTheHistory: what is held because of a recovery, a restore or a user stays in the history as long as the
// hold lasts. Newer backups do not end a hold.
func TestHoldsOutlastTheHistory(t *testing.T) {
	t.Parallel()
	const every = 10 * time.Minute
	requested := metav1.NewTime(epoch.Add(every / 2))
	recovered := func(trigger v1beta2.RecoveryTrigger) func(*scene) ([]*v1beta2.EtcdRestore, *v1beta2.RecoveryStatus) {
		return func(*scene) ([]*v1beta2.EtcdRestore, *v1beta2.RecoveryStatus) {
			return nil, &v1beta2.RecoveryStatus{Trigger: trigger, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: requested, CompletionTime: &requested}
		}
	}
	for name, hold := range map[string]func(*scene) ([]*v1beta2.EtcdRestore, *v1beta2.RecoveryStatus){
		"recovery from a survivor": recovered(v1beta2.RecoveryTriggerAutomatic),
		"restore that has ended":   recovered(v1beta2.RecoveryTriggerRestore),
		"revision of a restore": func(s *scene) ([]*v1beta2.EtcdRestore, *v1beta2.RecoveryStatus) {
			if s.Now.Sub(epoch) > lossHold {
				return nil, nil
			}
			r := &v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "b", Revision: ptr.To[int64](1)}}}
			return []*v1beta2.EtcdRestore{r}, nil
		},
		"snapshot that a user holds": func(s *scene) ([]*v1beta2.EtcdRestore, *v1beta2.RecoveryStatus) {
			s.Backup.Spec.HeldSnapshots = []string{good(1).URI}
			if s.Now.Sub(epoch) > lossHold {
				s.Backup.Spec.HeldSnapshots = nil
			}
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: int64(every / time.Second)})
			makes := func(at time.Time, revision int64) {
				t.Helper()
				s.Now = at
				restores, recovery := hold(s)
				c := newCluster(nil)
				c.Status.Recovery = recovery
				if recovery != nil && recovery.Trigger == v1beta2.RecoveryTriggerRestore {
					c.Status.Restores = []v1beta2.ClusterRestore{{Time: recovery.CompletionTime}}
				}
				s.Held = Held(s.Backup, nil, restores, []*v1beta2.EtcdCluster{c}, s.Now)
				s.begins(at, 1)
				s.ends(time.Second, good(revision))
				s.step()
			}
			for n := range int64(maxGoodKept + 5) {
				makes(epoch.Add(time.Duration(n)*every), n+1)
			}
			h := s.Backup.Status.History
			if len(h) != maxGoodKept+1 || h[maxGoodKept-1].Revision != 6 || h[maxGoodKept].Revision != 1 {
				t.Fatalf("%d records, the last ones %+v", len(h), h[max(len(h)-2, 0):])
			}
			makes(epoch.Add(lossHold+every), 999)
			if h := s.Backup.Status.History; len(h) != maxGoodKept || h[maxGoodKept-1].Revision != 7 {
				t.Errorf("after the hold: %d records, the last %+v", len(h), h[len(h)-1])
			}
		})
	}
}

// TestHistoryIsBounded: good, failed and held records have a bound each. Of too many held ones the oldest stay.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	const total = 500
	var history []v1beta2.BackupRecord
	var all []string
	for n := int64(total); n > 0; n-- {
		history = append(history, v1beta2.BackupRecord{Succeeded: true, URI: good(n).URI, Revision: n}, v1beta2.BackupRecord{})
		all = append(all, good(n).URI)
	}
	for name, test := range map[string]struct {
		held []string
		good int
		gone []int64 // some that do not stay
		kept []int64 // some that do
	}{
		"nothing is held":    {nil, maxGoodKept, []int64{1, 300}, []int64{301, 500}},
		"an old one is held": {[]string{good(7).URI}, maxGoodKept + 1, []int64{1, 300}, []int64{7, 301, 500}},
		"a new one is held":  {[]string{good(400).URI}, maxGoodKept + 1, []int64{1, 299}, []int64{300, 400, 500}},
		"all are held":       {all, maxGoodKept + maxHeldKept, []int64{201, 300}, []int64{1, 200, 301, 500}},
		"a place is held":    {[]string{"s3://bucket"}, maxGoodKept, []int64{1, 300}, []int64{301, 500}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := map[bool]int{}
			var got []int64
			for _, r := range bounded(slices.Clone(history), test.held) {
				if count[r.Succeeded]++; r.Succeeded {
					got = append(got, r.Revision)
				}
			}
			if count[true] != test.good || count[false] != maxFailuresKept {
				t.Errorf("%d good records and %d failed ones", count[true], count[false])
			}
			for _, n := range test.kept {
				if !slices.Contains(got, n) {
					t.Errorf("%d does not stay", n)
				}
			}
			for _, n := range test.gone {
				if slices.Contains(got, n) {
					t.Errorf("%d stays", n)
				}
			}
		})
	}
}

// TestHistoryKeepsTheLastProved: under an alarm that lasts, or while no quorum responds, the last good backup stays in the
// history, because the agent deletes none. A restore without a name, and a name without a revision, find it there.
func TestHistoryKeepsTheLastProved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		doubt func(*v1beta2.BackupRecord)
		held  []string
		want  []int64 // what stays beside the newest
	}{
		"data differs":                 {func(r *v1beta2.BackupRecord) { r.DataDiffers = true }, nil, []int64{2}},
		"no quorum":                    {func(r *v1beta2.BackupRecord) { r.Unconfirmed = true }, nil, []int64{2}},
		"data differs, one is held":    {func(r *v1beta2.BackupRecord) { r.DataDiffers = true }, []string{good(1).URI}, []int64{2, 1}},
		"data differs, it is held":     {func(r *v1beta2.BackupRecord) { r.DataDiffers = true }, []string{good(2).URI}, []int64{2}},
		"the newest are without doubt": {func(*v1beta2.BackupRecord) {}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := []v1beta2.BackupRecord{{}} // a failed one counts for nothing
			for n := int64(maxGoodKept + 10); n > 0; n-- {
				r := v1beta2.BackupRecord{Succeeded: true, URI: good(n).URI, Revision: n}
				if n > 2 {
					test.doubt(&r)
				}
				history = append(history, r)
			}
			got := bounded(history, test.held)
			if len(got) != 1+maxGoodKept+len(test.want) {
				t.Fatalf("%d records stay", len(got))
			}
			for i, n := range test.want {
				if r := got[1+maxGoodKept+i]; r.Revision != n {
					t.Errorf("revision %d stays, want %d", r.Revision, n)
				}
			}
		})
	}
}
