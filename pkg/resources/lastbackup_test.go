// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	if err := Restorable(nil); !errors.Is(err, ErrNoBackup) {
		t.Errorf("without a backup: %v", err)
	}
	if err := Restorable(&v1beta2.LastBackup{Name: "b"}); !errors.Is(err, ErrBackupNotVerified) || !strings.Contains(err.Error(), "EtcdBackup b") {
		t.Errorf("one that was not verified: %v", err)
	}
	if err := Restorable(&v1beta2.LastBackup{Name: "b", Verified: true}); err != nil {
		t.Error(err)
	}
}

func TestLastBackup(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)
	at := func(minutes int) metav1.Time { return metav1.NewTime(begun.Add(time.Duration(minutes) * time.Minute)) }
	made := func(name string, minutes int) *v1beta2.EtcdBackup {
		b := &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Status.LastSuccessDate, b.Status.EtcdRevision = at(minutes), int64(minutes)
		return b
	}
	for name, test := range map[string]struct {
		known   *v1beta2.LastBackup
		backups []*v1beta2.EtcdBackup
		want    string
	}{
		"nothing":                               {want: ""},
		"none that was good":                    {backups: []*v1beta2.EtcdBackup{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, want: ""},
		"the newest":                            {backups: []*v1beta2.EtcdBackup{made("a", 5), made("b", 9), made("c", 7)}, want: "b"},
		"of an earlier cluster of that name":    {backups: []*v1beta2.EtcdBackup{made("a", -5)}, want: ""},
		"one whose EtcdBackup no longer exists": {known: &v1beta2.LastBackup{Name: "gone", Time: at(8)}, backups: []*v1beta2.EtcdBackup{made("a", 5)}, want: "gone"},
		"newer than what the status says":       {known: &v1beta2.LastBackup{Name: "a", Time: at(5)}, backups: []*v1beta2.EtcdBackup{made("a", 5), made("b", 6)}, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}}
			c.Status.LastBackup = test.known
			got := ""
			if last := LastBackup(c, test.backups); last != nil {
				got = last.Name
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
