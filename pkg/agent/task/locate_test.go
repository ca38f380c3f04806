// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// TestPrefixOfSeveralClusters: a cluster was created again under the same name. The message tells them apart, and says
// which field selects one.
func TestPrefixOfSeveralClusters(t *testing.T) {
	b := newBench(t, nil)
	at := time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)
	again := manifest.Owner{Namespace: owner.Namespace, Name: owner.Name, UID: "again"}
	b.keep(owner, "mine", at.Add(-time.Hour), 6)
	older := b.keep(owner, "mine", at, 7)
	newer := b.keep(again, "mine", at.Add(time.Hour), 2)
	result := b.run(agent.CommandVerify, &agent.Request{ID: "v", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{}})
	if result.Error == nil || result.Error.Class != agent.ClassNotFound {
		t.Fatalf("found %+v", result)
	}
	for _, part := range []string{
		"2 of " + owner.Name + " with UID " + owner.UID + ", the newest of 2026-11-01T03:00:00Z, at " + filepath.Dir(filepath.Dir(older)),
		"1 of " + owner.Name + " with UID again, the newest of 2026-11-01T04:00:00Z, at " + filepath.Dir(filepath.Dir(newer)),
		"spec.persistentVolumeClaim.path", "spec.backup",
	} {
		if !strings.Contains(result.Error.Message, part) {
			t.Errorf("%q does not say %q", result.Error.Message, part)
		}
	}
}
