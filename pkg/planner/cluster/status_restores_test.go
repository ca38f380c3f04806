// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestRestoresInStatus: a restore counts from the time at which the old members have ended, and not if it was abandoned.
func TestRestoresInStatus(t *testing.T) {
	requested := v1beta2.ClusterRestore{Name: "r", UID: "one", Revision: 5, RevisionBump: 1}
	earlier := v1beta2.ClusterRestore{Name: "e", UID: "zero", Time: ptr.To(metav1.NewTime(testNow.Add(-time.Hour)))}
	ended := metav1.NewTime(testNow.Add(-time.Minute))
	since := func(at time.Time, bump int64) []v1beta2.ClusterRestore {
		done := requested
		done.RevisionBump, done.Time = bump, ptr.To(metav1.NewTime(at))
		return []v1beta2.ClusterRestore{done, earlier}
	}
	for name, test := range map[string]struct {
		recovery *v1beta2.RecoveryStatus
		want     []v1beta2.ClusterRestore
	}{
		"it is filled":                    {&v1beta2.RecoveryStatus{ID: "one", Phase: v1beta2.RecoveryPhaseFilling}, []v1beta2.ClusterRestore{requested, earlier}},
		"the old members end":             {&v1beta2.RecoveryStatus{ID: "one", Phase: v1beta2.RecoveryPhaseCutover}, []v1beta2.ClusterRestore{requested, earlier}},
		"the old members have ended":      {&v1beta2.RecoveryStatus{ID: "one", Phase: v1beta2.RecoveryPhaseCleaning, RevisionBump: 9}, since(testNow, 9)},
		"it is complete":                  {&v1beta2.RecoveryStatus{ID: "one", Phase: v1beta2.RecoveryPhaseSucceeded, CompletionTime: &ended}, since(ended.Time, 0)},
		"it was abandoned":                {&v1beta2.RecoveryStatus{ID: "one", Phase: v1beta2.RecoveryPhaseAbandoned}, []v1beta2.ClusterRestore{earlier}},
		"another recovery took its place": {&v1beta2.RecoveryStatus{ID: "two", Phase: v1beta2.RecoveryPhaseFilling}, []v1beta2.ClusterRestore{earlier}},
		"the request is lost":             {nil, []v1beta2.ClusterRestore{earlier}},
	} {
		o := observed(t, 3, "a b c")
		o.Cluster.Status.Restores, o.Record.Recovery = []v1beta2.ClusterRestore{requested, earlier}, test.recovery
		got := statusOf(o)
		if diff := cmp.Diff(test.want, got.Restores); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRestoreOfTheFuture: a restore that ended while a clock was ahead does not hide all backups until that time comes.
func TestRestoreOfTheFuture(t *testing.T) {
	at := func(uid string, after time.Duration) v1beta2.ClusterRestore {
		return v1beta2.ClusterRestore{Name: uid, UID: uid, Time: ptr.To(metav1.NewTime(testNow.Add(after)))}
	}
	ended := metav1.NewTime(testNow.Add(24 * time.Hour))
	done := at("now", 0)
	for name, test := range map[string]struct {
		status, want []v1beta2.ClusterRestore
		recovery     *v1beta2.RecoveryStatus
	}{
		"it has ended":                     {status: []v1beta2.ClusterRestore{at("a", 24*time.Hour), at("b", -time.Hour)}, want: []v1beta2.ClusterRestore{at("a", 0), at("b", -time.Hour)}},
		"the clocks of replicas differ":    {status: []v1beta2.ClusterRestore{at("a", time.Minute)}, want: []v1beta2.ClusterRestore{at("a", time.Minute)}},
		"another has followed":             {status: []v1beta2.ClusterRestore{at("c", -time.Hour), at("a", 24*time.Hour)}, want: []v1beta2.ClusterRestore{at("c", -time.Hour), at("a", -time.Hour)}},
		"its recovery ended in the future": {status: []v1beta2.ClusterRestore{{Name: "now", UID: "now"}}, want: []v1beta2.ClusterRestore{done}, recovery: &v1beta2.RecoveryStatus{ID: "now", Phase: v1beta2.RecoveryPhaseSucceeded, CompletionTime: &ended}},
	} {
		o := observed(t, 3, "a b c")
		o.Cluster.Status.Restores, o.Record.Recovery = test.status, test.recovery
		if diff := cmp.Diff(test.want, statusOf(o).Restores); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRepeatsRestore: name and request show what repeats, also after the status was lost.
func TestRepeatsRestore(t *testing.T) {
	now := v1beta2.ClusterRestore{Name: "r", UID: "new", Request: "hash"}
	earlier := v1beta2.ClusterRestore{Name: "r", UID: "old", Request: "hash", Time: ptr.To(metav1.NewTime(testNow))}
	another := earlier
	another.Request = "other"
	for name, test := range map[string]struct {
		status, record []v1beta2.ClusterRestore
		want           bool
	}{
		"the same":                {[]v1beta2.ClusterRestore{now, earlier}, nil, true},
		"the same, by the record": {[]v1beta2.ClusterRestore{now}, []v1beta2.ClusterRestore{earlier}, true},
		"another request":         {[]v1beta2.ClusterRestore{now, another}, nil, false},
		"the first":               {[]v1beta2.ClusterRestore{now}, nil, false},
		"unknown to the status":   {nil, []v1beta2.ClusterRestore{earlier}, false},
	} {
		o := observed(t, 3, "a b c")
		o.Cluster.Status.Restores, o.Record.Restores = test.status, test.record
		o.Cluster.Status.Recovery = &v1beta2.RecoveryStatus{ID: "new", Phase: v1beta2.RecoveryPhasePending}
		if got := recoveryInput(&o).Repeats; got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestRestoresOutliveTheStatus: a status that was lost or set back gets the restores back that the record keeps, without
// what a forged record could do harm with.
func TestRestoresOutliveTheStatus(t *testing.T) {
	at := func(name string, age time.Duration) v1beta2.ClusterRestore {
		return v1beta2.ClusterRestore{Name: name, UID: name, Request: "hash", Time: ptr.To(metav1.NewTime(testNow.Add(-age)))}
	}
	older, newer, future := at("older", 2*time.Hour), at("newer", time.Hour), at("future", -time.Hour)
	full := newer
	full.Backup, full.Revision, full.RevisionBump = "nightly", 7, 1000
	underWay := v1beta2.ClusterRestore{Name: "now", UID: "now"}
	for name, test := range map[string]struct {
		status, record, want, kept []v1beta2.ClusterRestore
		recovery                   *v1beta2.RecoveryStatus
	}{
		"the record has lost them":           {status: []v1beta2.ClusterRestore{full, older}, want: []v1beta2.ClusterRestore{full, older}, kept: []v1beta2.ClusterRestore{newer, older}},
		"the status has lost them":           {record: []v1beta2.ClusterRestore{newer, older}, want: []v1beta2.ClusterRestore{newer, older}, kept: []v1beta2.ClusterRestore{newer, older}},
		"the status is from before the last": {status: []v1beta2.ClusterRestore{older}, record: []v1beta2.ClusterRestore{newer, older}, want: []v1beta2.ClusterRestore{newer, older}, kept: []v1beta2.ClusterRestore{newer, older}},
		"the status tells more":              {status: []v1beta2.ClusterRestore{full}, record: []v1beta2.ClusterRestore{newer}, want: []v1beta2.ClusterRestore{full}, kept: []v1beta2.ClusterRestore{newer}},
		"one that has not happened is not recorded": {
			status: []v1beta2.ClusterRestore{underWay}, record: []v1beta2.ClusterRestore{older}, recovery: &v1beta2.RecoveryStatus{ID: "now", Phase: v1beta2.RecoveryPhaseFilling},
			want: []v1beta2.ClusterRestore{underWay, older}, kept: []v1beta2.ClusterRestore{older},
		},
		"one of the future is not told": {record: []v1beta2.ClusterRestore{future, older}, want: []v1beta2.ClusterRestore{older}, kept: []v1beta2.ClusterRestore{future, older}},
	} {
		o := observed(t, 3, "a b c")
		o.Cluster.Status.Restores, o.Record.Restores, o.Record.Recovery = test.status, test.record, test.recovery
		if diff := cmp.Diff(test.want, statusOf(o).Restores); diff != "" {
			t.Errorf("%s: status (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.kept, completeRecord(&o).Restores); diff != "" {
			t.Errorf("%s: record (-want +got):\n%s", name, diff)
		}
	}
}
