// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestClusterStatus(t *testing.T) {
	for _, c := range []struct {
		name, status string
		want         []string
	}{
		{"empty", "{}", nil},
		{"everything", `{phase: Running, size: 3, clientPort: 2379, observedGeneration: 1, tolerance: -1, dbSize: 5, conditions: [{type: Available, status: 'True', lastUpdateTime: '2026-01-02T03:04:05Z', lastTransitionTime: '2026-01-02T03:04:05+01:00'}, {type: AnyOther, status: Unknown}],
			memberStatuses: [{name: a, role: Leader, healthy: 'True', dbSize: 1, raftLag: 2}, {name: b, role: Pending}]}`, nil},
		{"hibernated", "{phase: Hibernated}", nil},
		{"unknown phase", "{phase: Sleeping}", []string{"NotSupported status.phase"}},
		{"negative", "{size: -1, clientPort: -1, observedGeneration: -1, dbSize: -1, memberStatuses: [{name: a, dbSize: -1, raftLag: -1}]}", []string{
			"Invalid status.size", "Invalid status.clientPort", "Invalid status.observedGeneration", "Invalid status.dbSize", "Invalid status.memberStatuses[0].dbSize", "Invalid status.memberStatuses[0].raftLag",
		}},
		{"conditions", "{conditions: [{type: Available, status: 'True'}, {type: Available, status: 'true'}, {type: Degraded}, {status: 'True'}]}", []string{
			"Duplicate status.conditions[1].type", "NotSupported status.conditions[1].status", "Required status.conditions[2].status", "Required status.conditions[3].type",
		}},
		{"times", "{conditions: [{type: Available, status: 'True', lastUpdateTime: yesterday, lastTransitionTime: '2026-01-02'}]}", []string{
			"Invalid status.conditions[0].lastUpdateTime", "Invalid status.conditions[0].lastTransitionTime",
		}},
		{"members", "{memberStatuses: [{name: a, role: Voter}, {name: a, healthy: Perhaps}, {}]}", []string{
			"NotSupported status.memberStatuses[0].role", "Duplicate status.memberStatuses[1].name", "NotSupported status.memberStatuses[1].healthy", "Required status.memberStatuses[2].name",
		}},
		{"operation", "{operation: {type: Defrag, id: a, phase: Running, members: [a], results: [{member: a, state: Succeeded, dbSizeBefore: 2, dbSizeAfter: 1}]}}", nil},
		{"wrong operation", "{operation: {type: Explode, phase: Done, results: [{state: Perhaps}, {member: a, dbSizeBefore: -1, dbSizeAfter: -1}, {member: a}]}}", []string{
			"NotSupported status.operation.type", "NotSupported status.operation.phase", "Required status.operation.results[0].member", "NotSupported status.operation.results[0].state",
			"Invalid status.operation.results[1].dbSizeBefore", "Invalid status.operation.results[1].dbSizeAfter", "Duplicate status.operation.results[2].member",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			from := cluster(t, "")
			to := from.DeepCopy()
			parse(t, c.status, &to.Status)
			expect(t, ValidateEtcdClusterStatusUpdate(to, from), c.want...)
			expect(t, ValidateEtcdClusterStatusUpdate(to, to.DeepCopy()))
		})
	}
	from := cluster(t, "{size: 9, version: x}")
	to := from.DeepCopy()
	to.Status.Phase = v1beta2.ClusterPhaseFailed
	expect(t, ValidateEtcdClusterStatusUpdate(to, from))
	to.UID = "changed"
	expect(t, ValidateEtcdClusterStatusUpdate(to, from), "Invalid metadata.uid")
}

const wrongCondition = "conditions: [{type: Verified, status: 'True', reason: 'two words', lastTransitionTime: '2026-01-02T03:04:05Z'}]"

func TestBackupStatus(t *testing.T) {
	for status, want := range map[string][]string{
		"{}": nil,
		"{phase: Succeeded, succeeded: true, Reason: '', etcdRevision: 1, size: 2, storedSize: 3, attempts: 1, progress: {bytes: 1}, conditions: [{type: Verified, status: 'True', reason: Hash, lastTransitionTime: '2026-01-02T03:04:05Z'}]}": nil,
		"{phase: Done}": {"NotSupported status.phase"},
		"{etcdRevision: -1, observedGeneration: -1, size: -1, storedSize: -1, attempts: -1, progress: {bytes: -1, totalBytes: -1}}": {
			"Invalid status.etcdRevision", "Invalid status.observedGeneration", "Invalid status.size", "Invalid status.storedSize", "Invalid status.attempts", "Invalid status.progress.bytes", "Invalid status.progress.totalBytes",
		},
		"{" + wrongCondition + "}": {"Invalid status.conditions[0].reason"},
	} {
		from := backup(t, "{}")
		to := from.DeepCopy()
		parse(t, status, &to.Status)
		expect(t, ValidateEtcdBackupStatusUpdate(to, from), want...)
		expect(t, ValidateEtcdBackupStatusUpdate(to, to.DeepCopy()))
		to.UID = "changed"
		expect(t, ValidateEtcdBackupStatusUpdate(to, from), append(want, "Invalid metadata.uid")...)
	}
}

func TestRestoreStatus(t *testing.T) {
	for status, want := range map[string][]string{
		"{}": nil,
		"{phase: Succeeded, succeeded: true, revision: 1, progress: {bytes: 1, totalBytes: 1}}": nil,
		"{phase: Done}": {"NotSupported status.phase"},
		"{revision: -1, observedGeneration: -1, progress: {bytes: -1}}": {"Invalid status.revision", "Invalid status.observedGeneration", "Invalid status.progress.bytes"},
		"{" + wrongCondition + "}":                                      {"Invalid status.conditions[0].reason"},
	} {
		from := restore(t, "{}")
		to := from.DeepCopy()
		parse(t, status, &to.Status)
		expect(t, ValidateEtcdRestoreStatusUpdate(to, from), want...)
		expect(t, ValidateEtcdRestoreStatusUpdate(to, to.DeepCopy()))
		to.UID = "changed"
		expect(t, ValidateEtcdRestoreStatusUpdate(to, from), append(want, "Invalid metadata.uid")...)
	}
}
