// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

// Oldest names the tests that run on the oldest supported Kubernetes as well as on the newest:
// what every cluster goes through, one test of each kind. The flag -oldest selects them.
func Oldest() []string {
	return []string{
		"TestCreate",
		"TestScale",
		"TestMemberLost",
		"TestMinorUpgrade",
		"TestBackup",
		"TestRestoreInPlace",
		"TestRecovery",
		"TestTLSStatic",
		"TestAdmission",
	}
}

// Core names the tests for the loop of a change: those of Oldest, and the next ones that found most.
// The flag -core selects them.
func Core() []string {
	return append(Oldest(),
		"TestDelete",
		"TestOldAPI",
		"TestStatusTruth",
		"TestMemberWithVolumeReturns",
		"TestRollout",
		"TestQuorumLost",
		"TestRecoveryFromAVolume",
		"TestReturnedNamespace",
		"TestBackupSubresource",
		"TestUnmanagedMember",
		"TestServerSideApply",
	)
}
