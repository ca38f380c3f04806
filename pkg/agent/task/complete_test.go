// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"path/filepath"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// unproved returns the requests of the first and of the last container of a backup that a restore
// proves, and of the one between them.
func (b *bench) unproved(id string, started time.Time) (save, fetch, complete *agent.Request) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "manifest.json")
	save = b.saveRequest(id, manifest.LayoutDirectory)
	save.Save.Started, save.Save.ManifestFile = started, file
	fetch = &agent.Request{ID: id, Store: save.Store, Fetch: &agent.Fetch{File: filepath.Join(b.t.TempDir(), "snapshot.db"), ManifestFile: file}}
	complete = &agent.Request{
		ID: id, Store: save.Store, Complete: &agent.Complete{Layout: manifest.LayoutDirectory, Owner: owner, ManifestFile: file},
		Prune: &agent.Prune{Layout: manifest.LayoutDirectory, Owner: owner, Count: 1},
	}
	return save, fetch, complete
}

// TestABackupThatARestoreProves becomes a backup after the proof, and only then older backups
// go. One that is disproved costs no other backup, and is never taken for one.
func TestABackupThatARestoreProves(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	begin := time.Now().Add(-time.Hour)
	old := b.keep(owner, "", begin, 1)

	// The first one is disproved: nothing follows its save.
	save, _, _ := b.unproved("disproved", begin.Add(time.Minute))
	disproved := b.mustRun(agent.CommandSave, save)
	if got := b.left([]string{old, manifest.LayoutDirectory.ManifestKey(disproved.Key), disproved.Key}); got != "101" {
		t.Fatalf("before the proof are left %s", got)
	}
	verify := &agent.Request{ID: "v", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{Expected: agent.Expected{ID: "disproved"}}}
	b.mustFail(agent.CommandVerify, verify, agent.ClassNotFound)

	save, fetch, complete := b.unproved("proved", begin.Add(2*time.Minute))
	saved := b.mustRun(agent.CommandSave, save)
	if fetched := b.mustRun(agent.CommandFetch, fetch); fetched.Key != saved.Key {
		t.Errorf("fetched %s, saved %s", fetched.Key, saved.Key)
	}
	mustHaveSum(t, fetch.Fetch.File, saved.SHA256)
	for range 2 { // once more, as after a restart of the pod
		made := b.mustRun(agent.CommandComplete, complete)
		if made.VerifiedBy != v1beta2.VerificationRestore || made.URI != saved.URI || made.SHA256 != saved.SHA256 || made.Warning != "" {
			t.Errorf("completed: %+v", made)
		}
	}
	if got := b.left([]string{old, manifest.LayoutDirectory.ManifestKey(saved.Key), saved.Key}); got != "011" {
		t.Errorf("after the proof are left %s", got)
	}
	if found := b.mustRun(agent.CommandVerify, &agent.Request{ID: "v", Store: verify.Store, Verify: &agent.Verify{}}); found.Key != saved.Key {
		t.Errorf("the newest is %s, want %s", found.Key, saved.Key)
	}
	if again := b.mustRun(agent.CommandSave, save); !again.AlreadyDone {
		t.Error("a later attempt makes it again")
	}
}

// TestCompleteTrustsNoFile: what is completed is of this transfer, of this owner, and there.
func TestCompleteTrustsNoFile(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	save, _, complete := b.unproved("id-1", time.Now())
	saved := b.mustRun(agent.CommandSave, save)
	another, unmade := *complete, *complete
	another.ID = "id-2"
	b.mustFail(agent.CommandComplete, &another, agent.ClassRequest)
	unmade.Complete = &agent.Complete{Layout: manifest.LayoutDirectory, Owner: manifest.Owner{Namespace: "ns", Name: "c", UID: "v"}, ManifestFile: complete.Complete.ManifestFile}
	b.mustFail(agent.CommandComplete, &unmade, agent.ClassRequest)
	if err := b.store.Delete(t.Context(), saved.Key); err != nil {
		t.Fatal(err)
	}
	b.mustFail(agent.CommandComplete, complete, agent.ClassNotFound)
	if got := b.objects(); len(got) > 0 {
		t.Errorf("left are %v", got)
	}
}

// TestUnconfirmedBackupsPruneNothing: a member without a quorum may lack writes that older
// backups have.
func TestUnconfirmedBackupsPruneNothing(t *testing.T) {
	cluster := etcdtest.NewVoters(t, 3)
	b := newBench(t, cluster)
	old := b.keep(owner, "", time.Now().Add(-time.Hour), 1)
	for _, name := range []string{"m1", "m2"} {
		cluster.Member(name).Kill()
	}
	request := b.saveRequest("id-1", manifest.LayoutDirectory)
	request.Prune = &agent.Prune{Layout: manifest.LayoutDirectory, Owner: owner, Count: 1}
	result := b.mustRun(agent.CommandSave, request)
	if got := b.left([]string{old}); got != "1" || result.Warning != errUnconfirmed.Error() || !result.Unconfirmed {
		t.Errorf("left are %s, the warning is %q, unconfirmed is %t", got, result.Warning, result.Unconfirmed)
	}
}

// TestBackupsOfDifferentDataPruneNothing: under the alarm CORRUPT a quorum confirms each backup, and the member that it is
// of may still have the wrong data. The older backups may be the only ones with the right data.
func TestBackupsOfDifferentDataPruneNothing(t *testing.T) {
	cluster := etcdtest.NewVoters(t, 3)
	b := newBench(t, cluster)
	old := b.keep(owner, "", time.Now().Add(-time.Hour), 1)
	cluster.Leader().Raise(cluster.Leader().ID(), pb.AlarmType_CORRUPT)
	save, _, complete := b.unproved("id-1", time.Now())
	direct := b.saveRequest("id-2", manifest.LayoutDirectory)
	direct.Prune = complete.Prune
	b.mustRun(agent.CommandSave, save)
	for _, result := range []*agent.Result{
		b.mustRun(agent.CommandComplete, complete),
		b.mustRun(agent.CommandSave, direct),
		b.mustRun(agent.CommandSave, direct), // it finds what the first attempt has stored
	} {
		if got := b.left([]string{old}); got != "1" || result.Warning != errDataDiffers.Error() || !result.DataDiffers || result.Unconfirmed {
			t.Errorf("left are %s, the warning is %q, result %+v", got, result.Warning, result)
		}
	}
}
