// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestSourceOf(t *testing.T) {
	t.Parallel()
	for want, spec := range map[string]v1beta2.BackupSpec{
		"a":                   {EtcdCluster: &v1beta2.EtcdClusterRef{Name: "a"}},
		"b":                   {EtcdEndpoints: []string{"http://b-client:2379"}},
		"c":                   {EtcdEndpoints: []string{"https://c-client.ns.svc:2379", "https://c-client.ns.svc.cluster.local:2379"}},
		"http://d.example:1":  {EtcdEndpoints: []string{"http://d.example:1"}},
		"http://x-client.y:1": {EtcdEndpoints: []string{"http://x-client.y:1"}},
	} {
		if got := SourceOf(&v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: spec}); got != want {
			t.Errorf("source of %v is %q, want %q", spec.EtcdEndpoints, got, want)
		}
	}
}

func TestBackupOf(t *testing.T) {
	t.Parallel()
	b := &v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{EtcdCluster: &v1beta2.EtcdClusterRef{Name: "a"}}}
	if !BackupOf(b, "a") || BackupOf(b, "b") {
		t.Error("it is a backup of a, and of no other")
	}
	b.Annotations = map[string]string{AnnotationPreRestoreBackup: "r"}
	if BackupOf(b, "a") {
		t.Error("a pre-restore backup counts as a backup")
	}
}

func TestRestorable(t *testing.T) {
	t.Parallel()
	if err := Restorable(nil, true); !errors.Is(err, ErrNoBackup) {
		t.Errorf("without a backup: %v", err)
	}
	if err := Restorable(&v1beta2.LastBackup{Name: "b"}, true); !errors.Is(err, ErrBackupNotVerified) || !strings.Contains(err.Error(), "EtcdBackup b") {
		t.Errorf("one that was not verified: %v", err)
	}
	if err := Restorable(&v1beta2.LastBackup{Name: "b", Verified: true, DataDiffers: true}, true); !errors.Is(err, ErrBackupDataDiffers) || !strings.Contains(err.Error(), "EtcdBackup b") {
		t.Errorf("one of members whose data differed: %v", err)
	}
	if err := Restorable(&v1beta2.LastBackup{Name: "b", Verified: true}, false); err != nil {
		t.Error(err)
	}
	encrypted := &v1beta2.LastBackup{Name: "b", Verified: true, Encrypted: true}
	if err := Restorable(encrypted, false); !errors.Is(err, ErrBackupEncrypted) {
		t.Errorf("one that the controller cannot decrypt: %v", err)
	}
	if err := Restorable(encrypted, true); err != nil {
		t.Errorf("for a request that decrypts: %v", err)
	}
}

func TestLastBackup(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)
	at := func(minutes int) metav1.Time { return metav1.NewTime(begun.Add(time.Duration(minutes) * time.Minute)) }
	made := func(name string, minutes int) *v1beta2.EtcdBackup {
		b := &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta2.BackupSpec{EtcdCluster: &v1beta2.EtcdClusterRef{Name: "c"}}}
		b.Status.Succeeded, b.Status.StartTime, b.Status.CompletionTime = true, ptr.To(at(minutes-1)), ptr.To(at(minutes))
		b.Status.LastSuccessDate, b.Status.EtcdRevision = at(minutes), int64(minutes)
		return b
	}
	restored := func(backup string, revision int64) []v1beta2.ClusterRestore {
		return []v1beta2.ClusterRestore{{Name: "under way"}, {Name: "r", Backup: backup, Revision: revision, Time: ptr.To(at(10))}, {Name: "earlier", Backup: "b", Revision: 9, Time: ptr.To(at(1))}}
	}
	raised := func(by int64) []v1beta2.ClusterRestore {
		list := restored("a", 5)
		list[1].RevisionBump = by
		return list
	}
	scheduled := func(name string, minutes ...int) *v1beta2.EtcdBackup {
		b := made(name, minutes[0])
		for _, m := range minutes {
			b.Status.History = append(b.Status.History, v1beta2.BackupRecord{StartTime: at(m - 1), CompletionTime: ptr.To(at(m)), Succeeded: true, Revision: int64(m)})
		}
		return b
	}
	running := func(b *v1beta2.EtcdBackup, minutes int) *v1beta2.EtcdBackup {
		b.Status.StartTime, b.Status.CompletionTime = ptr.To(at(minutes)), nil
		return b
	}
	since := func(b *v1beta2.EtcdBackup, minutes int) *v1beta2.EtcdBackup {
		b.Status.StartTime = ptr.To(at(minutes))
		return b
	}
	preRestore := func(b *v1beta2.EtcdBackup) *v1beta2.EtcdBackup {
		b.Annotations = map[string]string{AnnotationPreRestoreBackup: "r"}
		return b
	}
	of := func(cluster string, b *v1beta2.EtcdBackup) *v1beta2.EtcdBackup {
		b.Spec.EtcdCluster.Name = cluster
		return b
	}
	verified := func(b *v1beta2.EtcdBackup, revision int64) *v1beta2.EtcdBackup {
		b.Status.Verified, b.Status.EtcdRevision = true, revision
		return b
	}
	unconfirmed := func(b *v1beta2.EtcdBackup) *v1beta2.EtcdBackup {
		b.Status.Unconfirmed = true
		return b
	}
	differs := func(b *v1beta2.EtcdBackup) *v1beta2.EtcdBackup {
		if b.Status.DataDiffers = true; len(b.Status.History) > 0 {
			b.Status.History[0].DataDiffers = true
		}
		return b
	}
	underAlarm := differs(scheduled("s", 9, 7, 5)) // another attempt under the alarm, which the status of the EtcdBackup is not about
	underAlarm.Status.History[1].DataDiffers = true
	cutOff := unconfirmed(verified(scheduled("s", 9, 7), 7))
	cutOff.Status.History[0].Unconfirmed, cutOff.Status.History[1].Verified, cutOff.Status.History[1].Revision = true, true, 8
	recovered := &v1beta2.RecoveryStatus{Phase: v1beta2.RecoveryPhaseSucceeded, CompletionTime: ptr.To(at(8))}
	now := at(60).Time
	ahead := func(b *v1beta2.EtcdBackup) *v1beta2.EtcdBackup { // its node was a day ahead
		b.Status.CompletionTime = ptr.To(at(24 * 60))
		b.Status.LastSuccessDate = at(24 * 60)
		return b
	}
	endedAt := func(b *v1beta2.EtcdBackup, i, minutes int) *v1beta2.EtcdBackup { // by the clock of its node
		b.Status.History[i].CompletionTime = ptr.To(at(minutes))
		if i == 0 {
			b.Status.CompletionTime, b.Status.LastSuccessDate = ptr.To(at(minutes)), at(minutes)
		}
		return b
	}
	lacking := running(scheduled("s", 14, 7), 18) // its history does not tell of the newest backup, and nothing when that began
	lacking.Status.LastSuccessDate = at(16)
	for name, test := range map[string]struct {
		created  int
		recovery *v1beta2.RecoveryStatus
		known    *v1beta2.LastBackup
		backups  []*v1beta2.EtcdBackup
		restores []v1beta2.ClusterRestore
		want     string
	}{
		"the restored one, not the newer one of the replaced data": {
			known: &v1beta2.LastBackup{Name: "b", Time: at(9), Revision: 9}, backups: []*v1beta2.EtcdBackup{made("a", 5), made("b", 9)}, restores: restored("a", 5), want: "a",
		},
		"the restored one of a schedule": {
			known: &v1beta2.LastBackup{Name: "s", Time: at(9), Revision: 9}, backups: []*v1beta2.EtcdBackup{scheduled("s", 9, 7, 5)}, restores: restored("s", 5), want: "s of 5",
		},
		"the first one after a restore":                           {known: &v1beta2.LastBackup{Name: "s", Time: at(5), Revision: 5}, backups: []*v1beta2.EtcdBackup{scheduled("s", 12, 9, 7, 5)}, restores: restored("s", 5), want: "s of 12"},
		"not one of replaced data that a wrong clock dates after": {backups: []*v1beta2.EtcdBackup{made("a", 5), made("y", 12)}, restores: raised(8), want: "a"},
		"not one of replaced data that the status already names": {
			known: &v1beta2.LastBackup{Name: "y", Time: at(12), Revision: 12}, backups: []*v1beta2.EtcdBackup{made("a", 5), since(made("y", 12), 9)}, restores: raised(8), want: "a",
		},
		"one of the data that a restore has raised":          {backups: []*v1beta2.EtcdBackup{made("a", 5), made("y", 12)}, restores: raised(7), want: "y"},
		"not one that was begun before a restore":            {backups: []*v1beta2.EtcdBackup{made("a", 5), since(made("b", 11), 9)}, restores: restored("a", 5), want: "a"},
		"not one that runs after a restore":                  {backups: []*v1beta2.EtcdBackup{running(made("b", 9), 12)}, restores: restored("a", 5), want: ""},
		"the restored one, though its EtcdBackup is deleted": {known: &v1beta2.LastBackup{Name: "a", Time: at(5), Revision: 5}, restores: restored("a", 5), want: "a"},
		"none after a restore of a place in a store":         {known: &v1beta2.LastBackup{Name: "b", Time: at(9), Revision: 9}, backups: []*v1beta2.EtcdBackup{made("b", 9)}, restores: restored("", 5), want: ""},
		"the data that a restore has brought back":           {known: &v1beta2.LastBackup{Name: "a", Time: at(5), Revision: 5}, backups: []*v1beta2.EtcdBackup{made("a", 5), preRestore(made("p", 9))}, restores: restored("p", 9), want: "p"},
		"no backup of another cluster after its data was restored": {
			backups: []*v1beta2.EtcdBackup{of("d", scheduled("s", 12, 5))}, restores: restored("s", 5), want: "s of 5",
		},
		"the newest while a restore is under way": {backups: []*v1beta2.EtcdBackup{made("a", 5), made("b", 9)}, restores: []v1beta2.ClusterRestore{{Backup: "a", Revision: 5}}, want: "b"},

		"not a later one of a member without quorum": {backups: []*v1beta2.EtcdBackup{verified(made("a", 5), 7), unconfirmed(verified(made("b", 9), 7))}, want: "a"},
		"not the one in the status, if that is unconfirmed": {
			known: &v1beta2.LastBackup{Name: "b", Time: at(9), Revision: 6, Verified: true, Unconfirmed: true}, backups: []*v1beta2.EtcdBackup{verified(made("a", 5), 7)}, want: "a",
		},
		"an unconfirmed one with more writes":                  {backups: []*v1beta2.EtcdBackup{verified(made("a", 5), 7), unconfirmed(verified(made("b", 9), 8))}, want: "b"},
		"an unconfirmed one of the data after a recovery":      {recovery: recovered, backups: []*v1beta2.EtcdBackup{verified(made("a", 5), 9), unconfirmed(verified(made("b", 10), 8))}, want: "b"},
		"a confirmed one that was not verified proves nothing": {backups: []*v1beta2.EtcdBackup{made("a", 5), unconfirmed(verified(made("b", 9), 5))}, want: "b"},
		"the confirmed one before it in a history":             {backups: []*v1beta2.EtcdBackup{cutOff}, want: "s of 8"},
		"not a later one of members whose data differed":       {backups: []*v1beta2.EtcdBackup{verified(made("a", 5), 7), differs(verified(made("b", 9), 8))}, want: "a"},
		"not that, if only it is verified":                     {backups: []*v1beta2.EtcdBackup{made("a", 5), differs(verified(made("b", 9), 8))}, want: "a"},
		"not the one in the status, if its data differs": {
			known: &v1beta2.LastBackup{Name: "b", Time: at(9), Revision: 9, Verified: true, DataDiffers: true}, backups: []*v1beta2.EtcdBackup{verified(made("a", 5), 7)}, want: "a",
		},
		"one whose data differs, if there is no other":               {backups: []*v1beta2.EtcdBackup{differs(verified(made("b", 9), 8))}, want: "b"},
		"the one before the alarm in a history":                      {backups: []*v1beta2.EtcdBackup{underAlarm}, want: "s of 5"},
		"a newer one than one of the future":                         {known: &v1beta2.LastBackup{Name: "b", Time: at(24 * 60), Revision: 4}, backups: []*v1beta2.EtcdBackup{ahead(since(made("b", 4), 3)), made("a", 5)}, want: "a"},
		"one of the future that began after all others":              {backups: []*v1beta2.EtcdBackup{made("a", 5), ahead(since(made("b", 9), 8))}, want: "b"},
		"not one of the future whose EtcdBackup no longer exists":    {known: &v1beta2.LastBackup{Name: "gone", Time: at(24 * 60)}, backups: []*v1beta2.EtcdBackup{made("a", 5)}, want: "a"},
		"not one of the future that a restore may have replaced":     {known: &v1beta2.LastBackup{Name: "gone", Time: at(24 * 60)}, restores: restored("a", 5), want: ""},
		"the newest of a history, not one of a clock that was ahead": {backups: []*v1beta2.EtcdBackup{scheduled("s", 9, 40, 5)}, want: "s of 9"},
		"the newest of a history, also if the status told of another": {
			known: &v1beta2.LastBackup{Name: "s", Time: at(40), Revision: 40}, backups: []*v1beta2.EtcdBackup{scheduled("s", 9, 40, 5)}, want: "s of 9",
		},
		"the newest of a history after a clock that was behind":         {backups: []*v1beta2.EtcdBackup{scheduled("s", 4, 9, 7)}, want: "s of 4"},
		"the newest of a history whose node was behind":                 {backups: []*v1beta2.EtcdBackup{endedAt(scheduled("s", 9, 7), 0, -30)}, want: "s of 9"},
		"the newest of a history before one whose node was ahead":       {backups: []*v1beta2.EtcdBackup{endedAt(scheduled("s", 9, 7, 5), 1, 40)}, want: "s of 9"},
		"the newest of a history, though it is of the future":           {backups: []*v1beta2.EtcdBackup{scheduled("s", 24*60, 5)}, want: "s of 1440"},
		"the newest of another EtcdBackup than one that was ahead":      {backups: []*v1beta2.EtcdBackup{scheduled("s", 9, 40, 5), made("b", 12)}, want: "b of 12"},
		"the restored one, not one of a clock that was ahead before it": {backups: []*v1beta2.EtcdBackup{scheduled("s", 9, 40, 5)}, restores: restored("s", 5), want: "s of 5"},
		"not one that a clock that was ahead has begun in the future":   {backups: []*v1beta2.EtcdBackup{since(made("b", 9), 24*60)}, restores: restored("a", 5), want: ""},
		"the one before a newest one that may be from before a restore": {backups: []*v1beta2.EtcdBackup{lacking}, restores: restored("a", 5), want: "s of 14"},
		"of a cluster that was created in the future":                   {created: 24 * 60, backups: []*v1beta2.EtcdBackup{made("a", 5)}, want: "a"},
		"the restored one of the future":                                {backups: []*v1beta2.EtcdBackup{ahead(since(made("a", 5), 4))}, restores: restored("a", 5), want: "a"},

		"nothing":                               {want: ""},
		"none that was good":                    {backups: []*v1beta2.EtcdBackup{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, want: ""},
		"the newest":                            {backups: []*v1beta2.EtcdBackup{made("a", 5), made("b", 9), made("c", 7)}, want: "b"},
		"of an earlier cluster of that name":    {backups: []*v1beta2.EtcdBackup{made("a", -5)}, want: ""},
		"one whose EtcdBackup no longer exists": {known: &v1beta2.LastBackup{Name: "gone", Time: at(8)}, backups: []*v1beta2.EtcdBackup{made("a", 5)}, want: "gone"},
		"newer than what the status says":       {known: &v1beta2.LastBackup{Name: "a", Time: at(5)}, backups: []*v1beta2.EtcdBackup{made("a", 5), made("b", 6)}, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: at(test.created)}}
			c.Status.LastBackup, c.Status.Restores, c.Status.Recovery = test.known, test.restores, test.recovery
			got := ""
			if last := LastBackup(c, test.backups, now); last != nil {
				got = last.Name
				if len(test.backups) > 0 && len(test.backups[0].Status.History) > 0 {
					got += fmt.Sprintf(" of %d", last.Revision)
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestReplacedBy: a status from before a restore does not bring back what the restore has replaced.
func TestReplacedBy(t *testing.T) {
	t.Parallel()
	at := func(minutes int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 1, 3, minutes, 0, 0, time.UTC))
	}
	for name, test := range map[string]struct {
		started, ended int
		restores       []v1beta2.ClusterRestore
		want           bool
	}{
		"no restore":   {started: 5, ended: 6},
		"made before":  {started: 5, ended: 6, restores: []v1beta2.ClusterRestore{{Name: "r", Backup: "a", Time: ptr.To(at(10))}}, want: true},
		"begun before": {started: 9, ended: 11, restores: []v1beta2.ClusterRestore{{Name: "r", Backup: "a", Time: ptr.To(at(10))}}, want: true},
		"made since, on a node whose clock is late": {started: 11, ended: 8, restores: []v1beta2.ClusterRestore{{Name: "r", Backup: "a", Time: ptr.To(at(10))}}},
		"the restored one":                          {started: 5, ended: 6, restores: []v1beta2.ClusterRestore{{Name: "r", Backup: "b", Revision: 7, Time: ptr.To(at(10))}}},
		"a restore under way":                       {started: 5, ended: 6, restores: []v1beta2.ClusterRestore{{Name: "r", Backup: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
			b.Status = v1beta2.BackupStatus{Succeeded: true, StartTime: ptr.To(at(test.started)), CompletionTime: ptr.To(at(test.ended)), LastSuccessDate: at(test.ended), EtcdRevision: 7}
			c := &v1beta2.EtcdCluster{}
			c.Status.Restores, c.Status.LastBackup = test.restores, &v1beta2.LastBackup{Name: "b", Revision: 7, Time: at(test.ended)}
			if got := ReplacedBy(c, b); (got != nil) != test.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}
