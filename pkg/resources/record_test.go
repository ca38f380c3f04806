// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func exampleRecord() Record {
	return Record{
		BootstrapMember: first, ClusterID: "cdf818194e3a8c32", Log: LogRecord{ClusterID: "cdf818194e3a8c32", Minor: 5, Index: 1234},
		Recovery: &v1beta2.RecoveryStatus{
			ID: "two", Phase: v1beta2.RecoveryPhaseSucceeded, RecoveryMember: "c-s", RequestedAt: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		},
		Recoveries: []string{"one", "two"},
		Removed:    []string{"c-x", "c-y"},
		Restores:   []v1beta2.ClusterRestore{{Name: "r", UID: "u", Request: "hash", Time: ptr.To(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))}},
		PutBack:    PutBackRecord{Round: 2, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		Rotation:   RotationRecord{}.Next("a request").Next("a request"),

		CorruptVoters: 3, Unwritten: "8e9e05c52164694d",
	}
}

// TestRecordComesBack: what is written is read again, and keys of others stay.
func TestRecordComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster()
	for name, r := range map[string]Record{
		"empty": {}, "new": {BootstrapMember: first}, "full": exampleRecord(),
		"readable log": {Log: LogRecord{ClusterID: "beef", Minor: 6, Readable: true}},
	} {
		made := RecordConfigMap(c, r)
		if got := ParseRecord(made); !got.Equal(r) || !r.Equal(got) {
			t.Errorf("%s: %+v", name, got)
		}
		made.Data["note"] = "of a user"
		for other, next := range map[string]Record{"empty": {}, "full": exampleRecord()} {
			got := WithRecord(c, made, next)
			if !ParseRecord(got).Equal(next) || got.Data["note"] == "" || !OwnsRecord(c, got) {
				t.Errorf("%s, then %s: %v", name, other, got.Data)
			}
		}
		if !ParseRecord(made).Equal(r) {
			t.Errorf("%s: the live object was written to", name)
		}
	}
}

// TestRecordsDiffer: a record that has changed in anything is not equal.
func TestRecordsDiffer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Record){
		"bootstrap member": func(r *Record) { r.BootstrapMember = "x" },
		"cluster ID":       func(r *Record) { r.ClusterID = "x" },
		"log":              func(r *Record) { r.Log.Index++ },
		"phase":            func(r *Record) { r.Recovery.Phase = v1beta2.RecoveryPhaseAbandoned },
		"no recovery":      func(r *Record) { r.Recovery = nil },
		"recoveries":       func(r *Record) { r.Recoveries = r.Recoveries[1:] },
		"removed members":  func(r *Record) { r.Removed = r.Removed[1:] },
		"restores":         func(r *Record) { r.Restores[0].Request = "x" },
		"round of images":  func(r *Record) { r.PutBack.Round++ },
		"time of a round":  func(r *Record) { r.PutBack.Since = r.PutBack.Since.Add(time.Second) },
	} {
		r := exampleRecord()
		change(&r)
		if r.Equal(exampleRecord()) || exampleRecord().Equal(r) {
			t.Errorf("%s: it makes no difference", name)
		}
	}
}

// TestWithRemoved: the record remembers each removed member once, and forgets the oldest.
func TestWithRemoved(t *testing.T) {
	t.Parallel()
	r := exampleRecord()
	for i := range mostRemoved {
		r = r.WithRemoved(fmt.Sprint("c-", i)).WithRemoved("c-0")
	}
	if len(r.Removed) != mostRemoved || r.Removed[0] != "c-0" || r.Removed[mostRemoved-1] != fmt.Sprint("c-", mostRemoved-1) {
		t.Errorf("%q", r.Removed)
	}
	if made := exampleRecord(); len(made.Removed) != 2 || len(made.WithRemoved("c-z").Removed) != 3 || len(made.Removed) != 2 {
		t.Errorf("%q", made.Removed)
	}
}

// TestRecordedRestores: a record that was written by another program tells of no backup, and of no restore without an end.
func TestRecordedRestores(t *testing.T) {
	t.Parallel()
	cm := RecordConfigMap(newCluster(), Record{})
	cm.Data[recordRestores] = `[{"name":"a","uid":"a"},{"name":"b","uid":"b","backup":"of-another","revision":9,"time":"2026-01-02T03:04:05Z"},{"name":"c","uid":"c","time":"2026-01-03T03:04:05Z"}]`
	got := ParseRecord(cm).Restores
	if len(got) != 2 || got[0].Name != "c" || got[1].Backup != "" || got[1].Revision != 0 {
		t.Errorf("%+v", got)
	}
}

// TestUnreadableRecord: what cannot be read is missing, and everything else stays.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	cm := RecordConfigMap(newCluster(), exampleRecord())
	cm.Data[recordRecovery], cm.Data[recordLog], cm.Data[recordPutBack], cm.Data[recordRestores], cm.Data[recordRotation] = "{", "beef 3.x 1", "2 yesterday", "[{", "often"
	if got := ParseRecord(cm); got.Recovery != nil || got.Restores != nil || got.Log != (LogRecord{}) || got.PutBack.Round != 0 || got.Rotation.Rounds != 0 || got.ClusterID == "" || len(got.Recoveries) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestRotationRecord: a rotation is counted for as long as none for another cause comes between.
func TestRotationRecord(t *testing.T) {
	t.Parallel()
	r := RotationRecord{}.Next("one").Next("one")
	if r.RoundsOf("one") != 2 || r.RoundsOf("two") != 0 || r.RoundsOf("") != 0 {
		t.Errorf("%+v", r)
	}
	if r = r.Next("two"); r.RoundsOf("one") != 0 || r.RoundsOf("two") != 1 {
		t.Errorf("%+v", r)
	}
}

// TestWhoseRecord: a record of another cluster, and a ConfigMap of a user, are never taken.
func TestWhoseRecord(t *testing.T) {
	t.Parallel()
	c, other := newCluster(), newCluster()
	other.UID = "other"
	for _, test := range []struct {
		name   string
		change func(*corev1.ConfigMap)
		want   bool
	}{
		{"new", func(*corev1.ConfigMap) {}, true},
		{"without an owner reference", func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil }, true},
		{"known by its content only", func(cm *corev1.ConfigMap) { cm.OwnerReferences, cm.Annotations, cm.Labels = nil, nil, nil }, true},
		{"empty", func(cm *corev1.ConfigMap) { cm.ObjectMeta, cm.Data = metav1.ObjectMeta{}, nil }, true},
		{"without content", func(cm *corev1.ConfigMap) { cm.Data = nil }, true},
		{"owned by another cluster", func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].UID = "other" }, false},
		{"marked as another cluster's", func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = nil
			cm.Annotations[AnnotationClusterUID] = "other"
		}, false},
		{"empty and marked as another cluster's", func(cm *corev1.ConfigMap) {
			cm.OwnerReferences, cm.Data = nil, nil
			cm.Annotations[AnnotationClusterUID] = "other"
		}, false},
		{"with the content of another cluster", func(cm *corev1.ConfigMap) {
			cm.ObjectMeta, cm.Data = metav1.ObjectMeta{}, map[string]string{recordClusterUID: "other"}
		}, false},
		{"known by its bootstrap member only", func(cm *corev1.ConfigMap) {
			cm.ObjectMeta, cm.Data = metav1.ObjectMeta{}, map[string]string{recordBootstrapMember: BootstrapMember(c), recordClusterID: "beef"}
		}, true},
		{"with the bootstrap member of another cluster", func(cm *corev1.ConfigMap) {
			cm.ObjectMeta, cm.Data = metav1.ObjectMeta{}, map[string]string{recordBootstrapMember: BootstrapMember(other)}
		}, false},
		{"a user's", func(cm *corev1.ConfigMap) { cm.ObjectMeta, cm.Data = metav1.ObjectMeta{}, map[string]string{"a": "b"} }, false},
		{"a user's file", func(cm *corev1.ConfigMap) {
			cm.ObjectMeta, cm.Data, cm.BinaryData = metav1.ObjectMeta{}, nil, map[string][]byte{"a": nil}
		}, false},
	} {
		cm := RecordConfigMap(c, exampleRecord())
		test.change(cm)
		if got := OwnsRecord(c, cm); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
	cm := RecordConfigMap(c, exampleRecord())
	if !RecordMarked(c, cm) || MarkRecord(c, cm) {
		t.Error("a new record does not say in its content whose it is")
	}
	delete(cm.Data, recordClusterUID)
	if RecordMarked(c, cm) || !MarkRecord(c, cm) || !RecordMarked(c, cm) {
		t.Errorf("the content cannot be marked: %v", cm.Data)
	}
	if BootstrapMember(c) == BootstrapMember(other) || BootstrapMember(c) != BootstrapMember(c.DeepCopy()) {
		t.Error("the name of the bootstrap member does not follow from the UID")
	}
}

// TestWithRecovery: a recovery is remembered from its first step on, and the record is of the
// new etcd when the old members have ended.
func TestWithRecovery(t *testing.T) {
	t.Parallel()
	r := Record{BootstrapMember: "c-old", ClusterID: "old"}
	for _, step := range []struct {
		id    string
		phase v1beta2.RecoveryPhase
		of    string
		ids   []string
	}{
		{"one", v1beta2.RecoveryPhaseFilling, "old c-old", []string{"one"}},
		{"one", v1beta2.RecoveryPhaseAbandoned, "old c-old", []string{"one"}},
		{"two", v1beta2.RecoveryPhaseFilling, "old c-old", []string{"one", "two"}},
		{"two", v1beta2.RecoveryPhaseCutover, "old c-old", []string{"one", "two"}},
		{"two", v1beta2.RecoveryPhaseCleaning, "new c-s", []string{"one", "two"}},
		{"two", v1beta2.RecoveryPhaseSucceeded, "new c-s", []string{"one", "two"}},
		{"three", v1beta2.RecoveryPhaseCleaning, "new c-s", []string{"one", "two", "three"}},
		{"three", v1beta2.RecoveryPhaseAbandoned, "old c-s", []string{"one", "two", "three"}},
	} {
		r = r.WithRecovery(&v1beta2.RecoveryStatus{ID: step.id, Phase: step.phase, RecoveryMember: "c-s", ClusterID: "new", OldClusterID: "old"})
		if got := r.ClusterID + " " + r.BootstrapMember; got != step.of || !slices.Equal(r.Recoveries, step.ids) || r.Recovery.Phase != step.phase {
			t.Errorf("%s of %s: %s, recoveries %q", step.phase, step.id, got, r.Recoveries)
		}
	}
}

// TestCopies: pods and PVCs learn which recoveries have begun, and never forget one before
// there are too many.
func TestCopies(t *testing.T) {
	t.Parallel()
	c := newCluster(volumes)
	pvc := PVC(c, first)
	if !KnowsRecoveries(pvc, nil) || CopyRecoveries(pvc, nil) || KnowsRecoveries(pvc, []string{"one"}) {
		t.Error("a new PVC knows a recovery, or must know one")
	}
	if !CopyRecoveries(pvc, []string{"one", "two"}) || CopyRecoveries(pvc, []string{"two"}) || !slices.Equal(RecoveriesOn(pvc), []string{"one", "two"}) {
		t.Errorf("it knows %q", RecoveriesOn(pvc))
	}
	if !CopyRecoveries(pvc, []string{"three"}) || !slices.Equal(RecoveriesOn(pvc), []string{"one", "two", "three"}) {
		t.Errorf("a record that was lost took %q from it", RecoveriesOn(pvc))
	}
	var many []string
	for i := range MostRecoveries {
		many = append(many, fmt.Sprint("more-", i))
	}
	if !CopyRecoveries(pvc, many) || CopyRecoveries(pvc, many) || !slices.Equal(RecoveriesOn(pvc), many) {
		t.Errorf("it knows %d recoveries", len(RecoveriesOn(pvc)))
	}
	recovery := &v1beta2.RecoveryStatus{ID: "r", RecoveryMember: "c-s", Phase: v1beta2.RecoveryPhaseFilling}
	made := RecoveryPVC(c, recovery)
	if got := RecoveryOf(made); got == nil || got.Phase != v1beta2.RecoveryPhaseFilling || RecoveryOf(pvc) != nil {
		t.Errorf("it was created for %v", got)
	}
	recovery.Phase = v1beta2.RecoveryPhaseCutover
	if !CopyRecovery(made, recovery) || CopyRecovery(made, recovery) || RecoveryOf(made).Phase != v1beta2.RecoveryPhaseCutover {
		t.Errorf("its recovery is %v", RecoveryOf(made))
	}
	if kept := Released(c, made); kept.Annotations[AnnotationRecovery] != "" {
		t.Error("a released PVC says that it belongs to a recovery")
	}
}
