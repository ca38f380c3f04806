// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"io"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// TestWhyKept: what replaces a backup at a fixed path has at least what that backup has.
func TestWhyKept(t *testing.T) {
	t.Parallel()
	confirmed := manifest.Manifest{ClusterID: "a", Member: "m", Revision: 10}
	unconfirmed, differs := confirmed, confirmed
	unconfirmed.Unconfirmed, differs.DataDiffers = true, true
	at := func(m manifest.Manifest, clusterID string, revision int64) manifest.Manifest {
		m.ClusterID, m.Revision = clusterID, revision
		return m
	}
	for name, test := range map[string]struct {
		stored, next manifest.Manifest
		want         string // a part of the reason; empty: it is replaced
	}{
		"nothing was written since":                        {confirmed, confirmed, ""},
		"more was written":                                 {confirmed, at(confirmed, "a", 11), ""},
		"after a restore, which has raised the revision":   {confirmed, at(confirmed, "b", 1_000_000_010), ""},
		"after a restore of this backup in an older etcd":  {confirmed, at(confirmed, "b", 10), ""},
		"another etcd cluster, created again":              {confirmed, at(confirmed, "b", 1), "another etcd cluster (ID b, the backup is of a)"},
		"an etcd with a fixed token, created again":        {confirmed, at(confirmed, "a", 1), "has only revision 1"},
		"a manifest that does not tell its cluster":        {at(confirmed, "", 10), at(confirmed, "b", 9), "member m has only revision 9"},
		"a member that is cut off":                         {confirmed, at(unconfirmed, "a", 10), "no quorum confirmed that member m"},
		"a member that is cut off, with a higher revision": {confirmed, at(unconfirmed, "a", 11), "no quorum confirmed"},
		"members whose data differs":                       {confirmed, at(differs, "a", 11), "alarm CORRUPT"},
		"a quorum is back":                                 {unconfirmed, at(confirmed, "a", 10), ""},
		"no quorum again":                                  {unconfirmed, at(unconfirmed, "a", 12), ""},
		"another member, with less, and no quorum again":   {unconfirmed, at(unconfirmed, "a", 9), "has only revision 9"},
		"another etcd cluster after the quorum was lost":   {unconfirmed, at(confirmed, "b", 1), "has only revision 1"},
		"the data is repaired":                             {differs, at(confirmed, "a", 9), ""},
		"the data differs still":                           {differs, at(differs, "a", 9), ""},
	} {
		got := whyKept(&test.stored, &test.next)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// isStored fails unless the fixed path has exactly this backup.
func (b *bench) isStored(what string, saved *agent.Result) {
	b.t.Helper()
	found := b.run(agent.CommandVerify, &agent.Request{ID: "v", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{}})
	if found.Error != nil || found.SHA256 != saved.SHA256 {
		b.t.Errorf("%s: the path has %s (%v), want %s", what, found.SHA256, found.Error, saved.SHA256)
	}
}

// isKept fails unless a transfer leaves the backup at the fixed path, and says how to go on.
func (b *bench) isKept(what string, r *agent.Request, saved *agent.Result) {
	b.t.Helper()
	result := b.run(agent.CommandSave, r)
	if e := result.Error; e == nil || e.Class != agent.ClassExists || strings.Count(e.Message, "Choose another path, or move or delete "+saved.URI+" and "+saved.URI+".manifest.json") != 1 {
		b.t.Errorf("%s: %v", what, e)
	}
	b.isStored(what, saved)
}

// TestFixedPathKeepsTheBetterBackup: an EtcdBackup that is created again stores at the same path.
func TestFixedPathKeepsTheBetterBackup(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.NewVoters(t, 3)
	cluster.Leader().Put(10)
	b := newBench(t, cluster)
	b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutObject))
	cluster.Leader().Put(1)
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-2", manifest.LayoutObject))
	b.isStored("the same cluster again", saved)

	empty := newBench(t, etcdtest.New(t))
	b.isKept("another etcd cluster", empty.saveRequest("id-3", manifest.LayoutObject), saved)

	cluster.Leader().Raise(cluster.Member("m1").ID(), pb.AlarmType_CORRUPT)
	b.isKept("the data differs", b.saveRequest("id-4", manifest.LayoutObject), saved)

	for _, name := range []string{"m1", "m2"} {
		cluster.Member(name).Kill()
	}
	b.isKept("no quorum", b.saveRequest("id-5", manifest.LayoutObject), saved)

	// What a user has moved away is in the way of nothing.
	if err := b.store.Delete(t.Context(), saved.Key); err != nil {
		t.Fatal(err)
	}
	unconfirmed := b.mustRun(agent.CommandSave, b.saveRequest("id-5", manifest.LayoutObject))
	b.isStored("no quorum, and nothing to keep", unconfirmed)
}

// TestFixedPathKeepsWhatWasStoredMeanwhile by another transfer, while a snapshot is read.
func TestFixedPathKeepsWhatWasStoredMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t, etcdtest.New(t))
	whole, saved := b.store, (*agent.Result)(nil)
	b.store = &breaking{Store: whole, put: func(context.Context, string, io.Reader) error {
		b.store = whole
		b.cluster.Member("m0").Put(1)
		saved = b.mustRun(agent.CommandSave, b.saveRequest("id-2", manifest.LayoutObject))
		return nil
	}}
	result := b.run(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutObject))
	if result.Error == nil || result.Error.Class != agent.ClassExists {
		t.Errorf("the slower transfer: %v", result.Error)
	}
	b.isStored("the slower transfer", saved)
}

// TestFixedPathKeepsAnUnreadableBackup: a manifest in an archive tier may be that of a better backup. With a manifest that
// can be read again, the same transfer compares the two.
func TestFixedPathKeepsAnUnreadableBackup(t *testing.T) {
	t.Parallel()
	b := newBench(t, etcdtest.New(t))
	whole := b.store
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutObject))
	b.store = &partial{Store: whole, unreadable: []string{saved.Key + ".manifest.json"}}
	result := b.run(agent.CommandSave, b.saveRequest("id-2", manifest.LayoutObject))
	if e := result.Error; e == nil || e.Class != agent.ClassExists || !strings.Contains(e.Message, "archived") ||
		!strings.Contains(e.Message, "Choose another path, or move or delete "+saved.URI+" and "+saved.URI+".manifest.json") {
		t.Errorf("a manifest that cannot be read: %v", e)
	}
	b.store = whole
	b.isStored("a manifest that cannot be read", saved)
	b.mustRun(agent.CommandSave, b.saveRequest("id-2", manifest.LayoutObject))
}

// TestAnotherMemberMayReplace: one member may be cut off from a quorum that the next one has.
func TestAnotherMemberMayReplace(t *testing.T) {
	t.Parallel()
	if !memberFailed(errKept) {
		t.Error("no other member is tried")
	}
}
