// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

// Core names the tests that run on the oldest supported Kubernetes as well as on the newest:
// what every cluster goes through, one test of each kind. The flag -core selects them.
func Core() []string {
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
