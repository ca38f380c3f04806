// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"os"
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

// TestNewestBelowAPath: a late backup of a member that was cut off, and a node with a wrong clock, hide no better backup.
func TestNewestBelowAPath(t *testing.T) {
	at := time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)
	asKept := func(*manifest.Manifest) {}
	for name, test := range map[string]struct{ better, other func(*manifest.Manifest) }{
		"no quorum confirmed the later one":     {asKept, func(m *manifest.Manifest) { m.Unconfirmed = true }},
		"the data of the later one differs":     {asKept, func(m *manifest.Manifest) { m.DataDiffers, m.Revision = true, 8 }},
		"the node of the better one was behind": {func(m *manifest.Manifest) { m.StartedAt = at.Add(3 * time.Hour) }, asKept},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			better, other := b.keep(owner, "", at, 7), b.keep(owner, "", at.Add(time.Hour), 6)
			b.edit(better, test.better)
			b.edit(other, test.other)
			result := b.run(agent.CommandVerify, &agent.Request{ID: "v", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{}})
			if result.Revision != 7 {
				t.Errorf("found revision %d: %+v", result.Revision, result.Error)
			}
		})
	}
}

// edit changes a stored manifest.
func (b *bench) edit(key string, edit func(*manifest.Manifest)) {
	b.t.Helper()
	name := filepath.Join(b.dir, key)
	raw, err := os.ReadFile(name)
	if err != nil {
		b.t.Fatal(err)
	}
	m, err := manifest.Decode(raw)
	if err != nil {
		b.t.Fatal(err)
	}
	edit(m)
	if raw, err = m.Encode(); err == nil {
		err = os.WriteFile(name, raw, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
