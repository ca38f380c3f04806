// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// histories are all series of up to five backups. Each backup failed, succeeded or was
// verified. The oldest is last, and the order of times says nothing.
func histories() [][]v1beta2.BackupRecord {
	base := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	all := [][]v1beta2.BackupRecord{nil}
	for length := 1; length <= 5; length++ {
		series := 1
		for range length {
			series *= 3
		}
		for n := range series {
			var history []v1beta2.BackupRecord
			for i, code := 0, n; i < length; i, code = i+1, code/3 {
				end := metav1.NewTime(base.Add(time.Duration(i)*24*time.Hour + time.Minute))
				history = append(history, v1beta2.BackupRecord{
					StartTime: metav1.NewTime(base.Add(time.Duration(i) * 24 * time.Hour)), CompletionTime: &end,
					Succeeded: code%3 > 0, Verified: code%3 == 2, URI: fmt.Sprintf("s3://b/%d", 9-i), Revision: int64(1000 - i),
				})
			}
			if n%2 == 0 {
				slices.Reverse(history)
			}
			all = append(all, history)
		}
	}
	return all
}

// TestRetention checks every rule on every history, count and age.
func TestRetention(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 6, 0, 0, 0, 0, time.UTC)
	checked := 0
	for _, history := range histories() {
		for _, keep := range []Retention{{}, {Count: 1}, {Count: 2}, {Count: 4}, {Age: time.Hour}, {Age: 49 * time.Hour}, {Count: 2, Age: 73 * time.Hour}, {Count: 3, Age: time.Nanosecond}} {
			checkRetention(t, history, keep, now)
			checked++
		}
	}
	if checked < 2000 {
		t.Errorf("only %d cases", checked)
	}
}

func checkRetention(t *testing.T, history []v1beta2.BackupRecord, keep Retention, now time.Time) {
	t.Helper()
	expired := Expired(history, keep, now)
	gone := map[string]bool{}
	for _, r := range expired {
		gone[r.URI] = true
		if !r.Succeeded {
			t.Fatalf("%+v: a failed attempt is deleted: %+v", keep, r)
		}
	}
	var newest, newestGood, newestVerified *v1beta2.BackupRecord
	kept := 0
	for i := range history {
		r := &history[i]
		later := func(than *v1beta2.BackupRecord) bool { return than == nil || r.StartTime.After(than.StartTime.Time) }
		if later(newest) {
			newest = r
		}
		if r.Succeeded && later(newestGood) {
			newestGood = r
		}
		if r.Verified && later(newestVerified) {
			newestVerified = r
		}
		if r.Succeeded && !gone[r.URI] {
			kept++
		}
	}
	switch {
	case newestGood != nil && gone[newestGood.URI]:
		t.Fatalf("%+v: the newest good one is deleted: %+v", keep, history)
	case newestVerified != nil && gone[newestVerified.URI]:
		t.Fatalf("%+v: the newest verified one is deleted: %+v", keep, history)
	case len(expired) > 0 && !newest.Succeeded:
		t.Fatalf("%+v: something is deleted while the newest attempt has failed: %+v", keep, history)
	case keep.isUnlimited() && len(expired) > 0:
		t.Fatalf("no limit, and something is deleted")
	case newest != nil && newest.Succeeded && keep.Count > 0 && kept > int(keep.Count)+1:
		t.Fatalf("%+v: %d are kept: %+v", keep, kept, history)
	}
	for i := range history {
		r := &history[i]
		tooOld := keep.Age > 0 && now.Sub(r.CompletionTime.Time) > keep.Age
		if newest.Succeeded && r.Succeeded && tooOld && !gone[r.URI] && r != newestGood && r != newestVerified {
			t.Fatalf("%+v: %s is too old and kept", keep, r.URI)
		}
		if gone[r.URI] && !tooOld && keep.Count == 0 {
			t.Fatalf("%+v: %s is young and deleted", keep, r.URI)
		}
		// Whatever is kept is newer than whatever is deleted, but for the precious one.
		for _, e := range expired {
			if r.Succeeded && !gone[r.URI] && r != newestVerified && r.StartTime.Time.Before(e.StartTime.Time) {
				t.Fatalf("%+v: %s is kept and the younger %s deleted", keep, r.URI, e.URI)
			}
		}
	}
}

// TestRetentionGoesByTime keeps the newest although a sort of names or revisions would
// not: the revision has gained a digit, and the cluster has been restored.
func TestRetentionGoesByTime(t *testing.T) {
	t.Parallel()
	base := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	var history []v1beta2.BackupRecord
	for i, revision := range []int64{998, 999, 1000, 12} {
		history = append(history, v1beta2.BackupRecord{
			StartTime: metav1.NewTime(base.Add(time.Duration(i) * time.Hour)), Succeeded: true, Revision: revision,
			URI: fmt.Sprintf("s3://b/k_v%d", revision),
		})
	}
	expired := Expired(history, Retention{Count: 2}, base.Add(5*time.Hour))
	if len(expired) != 2 || expired[0].Revision != 998 || expired[1].Revision != 999 {
		t.Errorf("expired: %+v", expired)
	}
}

// TestHistoryGoesAsTheStoreDoes: after a cluster was made again, the records of the earlier one
// go by the same rule as its backups, and the last of them stays beyond the count.
func TestHistoryGoesAsTheStoreDoes(t *testing.T) {
	t.Parallel()
	base := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	var history []v1beta2.BackupRecord
	for i, uid := range []string{"now", "now", "now", "before", "before", "before"} {
		history = append(history, v1beta2.BackupRecord{
			StartTime: metav1.NewTime(base.Add(-time.Duration(i) * time.Hour)), Succeeded: true, Verified: true,
			URI: fmt.Sprintf("s3://b/k/nightly/v1/ns/c-%s/dir-%d/snapshot.db", uid, i),
		})
	}
	for want, keep := range map[string]Retention{
		"542":  {Count: 2},
		"54":   {Count: 4},
		"543":  {Age: 150 * time.Minute},
		"5432": {Count: 2, Age: 150 * time.Minute},
	} {
		got := ""
		for _, r := range Expired(history, keep, base) {
			got += strings.TrimSuffix(r.URI, "/snapshot.db")[len(r.URI)-len("5/snapshot.db"):]
		}
		if got != want {
			t.Errorf("%+v: %s expired, want %s", keep, got, want)
		}
	}
}

// TestConditionNamesWhatStays: the condition names the backups that retention keeps, for
// the user that pays for the store.
func TestConditionNamesWhatStays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		outcome Outcome
		parts   []string
	}{
		{Outcome{}, nil},
		{Outcome{Unproved: 12, UnprovedAt: "s3://b/k/c-1/"}, []string{"12 backups", "s3://b/k/c-1/", "delete them from the store"}},
		{Outcome{Spared: "s3://b/k/c-1/d/snapshot.db"}, []string{"s3://b/k/c-1/d/snapshot.db", "last backup of the earlier cluster", "delete its directory"}},
	} {
		message := retained(&test.outcome)
		if len(test.parts) == 0 && message != "no expired backup is in the store" {
			t.Errorf("%s", message)
		}
		for _, part := range test.parts {
			if !strings.Contains(message, part) {
				t.Errorf("%q is missing in %q", part, message)
			}
		}
	}
}

// TestRetentionIsNoLongerApplied: the condition goes with the first backup that has no retention, whatever it said, and
// comes back with the next one that has.
func TestRetentionIsNoLongerApplied(t *testing.T) {
	t.Parallel()
	none := func(b *v1beta2.EtcdBackup, is bool) {
		b.Spec.BackupPolicy.MaxBackups = 1
		if is {
			b.Spec.BackupPolicy.MaxBackups = 0
		}
	}
	held := func(b *v1beta2.EtcdBackup, is bool) { b.Spec.Hold = &is }
	for name, without := range map[string]func(*v1beta2.EtcdBackup, bool){"no count and no age": none, "held": held} {
		for warning, applied := range map[string]metav1.ConditionStatus{"": metav1.ConditionTrue, "the store rejected the deletion": metav1.ConditionFalse} {
			t.Run(name+", and before "+string(applied), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 1})
				makes := func(minute int, outcome Outcome, want metav1.ConditionStatus) {
					t.Helper()
					s.Now = epoch.Add(time.Duration(minute) * time.Minute)
					s.begins(s.Now, 1)
					s.ends(time.Second, outcome)
					s.step()
					is := metav1.ConditionStatus("")
					if c := meta.FindStatusCondition(s.Backup.Status.Conditions, ConditionRetentionApplied); c != nil {
						is = c.Status
					}
					if is != want {
						t.Errorf("after backup %d the condition is %q, want %q", minute, is, want)
					}
				}
				first := good(1)
				first.Warning = warning
				makes(1, first, applied)
				without(s.Backup, true)
				makes(2, good(2), "")
				without(s.Backup, false)
				makes(3, first, applied)
			})
		}
	}
}
