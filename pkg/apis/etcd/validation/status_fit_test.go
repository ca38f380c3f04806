// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/fuzzer"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestFitLeavesOutWhatIsRejected(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status, want string
		leftOut      int
	}{
		"a valid status stays":                    {"{phase: Running, memberStatuses: [{name: a, role: Leader}]}", "{phase: Running, memberStatuses: [{name: a, role: Leader}]}", 0},
		"a value of no meaning":                   {"{phase: Sleeping, size: 3}", "{size: 3}", 1},
		"members without a name":                  {"{memberStatuses: [{role: Leader}, {name: a}, {}, {id: b}]}", "{memberStatuses: [{name: a}]}", 5},
		"the second of two equal names":           {"{memberStatuses: [{name: a, id: '1'}, {name: a, id: '2'}, {name: b}]}", "{memberStatuses: [{name: a, id: '1'}, {name: b}]}", 1},
		"a role of a member, not the member":      {"{memberStatuses: [{name: a, role: Voter, healthy: Perhaps, dbSize: -1}]}", "{memberStatuses: [{name: a}]}", 3},
		"a condition without a status":            {"{conditions: [{type: A, status: Perhaps}, {type: B, status: 'True'}]}", "{conditions: [{type: B, status: 'True'}]}", 2},
		"the result of an operation":              {"{operation: {type: Defrag, id: x, results: [{member: a}, {}, {member: a}]}}", "{operation: {type: Defrag, id: x, results: [{member: a}]}}", 2},
		"control characters are cut out of texts": {`{reason: "a\u001b[31m\nb"}`, "{reason: 'a [31m b'}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var status, want v1beta2.ClusterStatus
			parse(t, test.status, &status)
			parse(t, test.want, &want)
			before := status.DeepCopy()
			got, errs := FitClusterStatus(status, v1beta2.ClusterStatus{})
			if diff := cmp.Diff(want, got); diff != "" || len(errs) != test.leftOut {
				t.Errorf("left out %v:\n%s", errs, diff)
			}
			if diff := cmp.Diff(*before, status); diff != "" {
				t.Errorf("fit changes what it was given:\n%s", diff)
			}
		})
	}
}

func TestFitCutsHugeTexts(t *testing.T) {
	t.Parallel()
	got, errs := FitClusterStatus(v1beta2.ClusterStatus{MemberStatuses: []v1beta2.MemberStatus{{Name: strings.Repeat("x", 1<<20)}}}, v1beta2.ClusterStatus{})
	if size := len(got.MemberStatuses[0].Name); size != maxStatusText || len(errs) != 0 {
		t.Errorf("the name has %d bytes: %v", size, errs)
	}
}

func TestLeaveOutOfAnUnknownPathChangesNothing(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "status", "spec.size", "status.nothing", "status.memberStatuses[7].name", "status.memberStatuses[99999999999999999999].name", "status.phase.more", "status.a b"} {
		status := v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning, MemberStatuses: []v1beta2.MemberStatus{{Name: "a"}}}
		before := status.DeepCopy()
		if LeaveOut(&status, field.ErrorList{{Type: field.ErrorTypeRequired, Field: path}}) || !cmp.Equal(*before, status) {
			t.Errorf("path %q changed the status to %+v", path, status)
		}
	}
}

// TestEveryStatusCanBeMadeValid fills statuses at random, so that every field holds something
// wrong at some time.
func TestEveryStatusCanBeMadeValid(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		f := randfill.New().NilChance(0.2).NumElements(0, 4).RandSource(fuzzer.Source{PCG: rand.NewPCG(seed, 1)})
		var cluster v1beta2.ClusterStatus
		var backup v1beta2.BackupStatus
		var restore v1beta2.RestoreStatus
		f.Fill(&cluster)
		f.Fill(&backup)
		f.Fill(&restore)
		fitted, _ := FitClusterStatus(cluster, v1beta2.ClusterStatus{})
		fittedBackup, _ := FitBackupStatus(backup, v1beta2.BackupStatus{})
		fittedRestore, _ := FitRestoreStatus(restore, v1beta2.RestoreStatus{})
		errs := append(validateClusterStatus(&fitted), validateBackupStatus(&fittedBackup)...)
		if errs = append(errs, validateRestoreStatus(&fittedRestore)...); len(errs) > 0 {
			t.Fatalf("seed %d: %v", seed, errs)
		}
		if len(cluster.Certificates) != len(fitted.Certificates) {
			t.Fatalf("seed %d: what is valid was left out", seed)
		}
	}
}
