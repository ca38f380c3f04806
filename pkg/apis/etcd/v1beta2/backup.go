// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// IsHeld is true while nothing that the EtcdBackup has stored may be deleted.
func (b *EtcdBackup) IsHeld() bool { return b.Spec.Hold != nil && *b.Spec.Hold }

// IsPeriodic is true for an EtcdBackup that makes backups again and again.
func (s *BackupSpec) IsPeriodic() bool {
	return s.BackupPolicy != nil && (s.BackupPolicy.Schedule != "" || s.BackupPolicy.BackupIntervalInSecond > 0)
}
