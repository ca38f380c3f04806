// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"net/url"
	"strings"
)

// IsHeld is true while nothing that the EtcdBackup has stored may be deleted.
func (b *EtcdBackup) IsHeld() bool { return b.Spec.Hold != nil && *b.Spec.Hold }

// IsPeriodic is true for an EtcdBackup that makes backups again and again.
func (s *BackupSpec) IsPeriodic() bool {
	return s.BackupPolicy != nil && (s.BackupPolicy.Schedule != "" || s.BackupPolicy.BackupIntervalInSecond > 0)
}

// ClusterIn returns the name of the EtcdCluster that a backup in a namespace names, also by the endpoints of its client
// Service; empty if it names none.
func (s *BackupSpec) ClusterIn(namespace string) string {
	if s.EtcdCluster != nil {
		return s.EtcdCluster.Name
	}
	found := ""
	for _, endpoint := range s.EtcdEndpoints {
		u, err := url.Parse(endpoint)
		if err != nil {
			return ""
		}
		service, rest, _ := strings.Cut(u.Hostname(), ".")
		in, _, _ := strings.Cut(rest, ".")
		name, ok := strings.CutSuffix(service, "-client")
		if !ok || name == "" || (in != "" && in != namespace) || (found != "" && found != name) {
			return ""
		}
		found = name
	}
	return found
}
