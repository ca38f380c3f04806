// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// kept is a backup that the model knows, and when it was really made.
type kept struct {
	key string
	at  time.Time
	uid string
}

// retentionWalk makes one backup after the other, with wrong clocks, and checks each prune.
type retentionWalk struct {
	*bench

	dice    *rand.Rand
	now     time.Time
	uid     string
	volume  bool
	prune   agent.Prune
	backups []kept // the oldest first
	log     []string
}

func (w *retentionWalk) pick(offsets ...time.Duration) time.Duration {
	return offsets[w.dice.IntN(len(offsets))]
}

const day = 24 * time.Hour

// step makes a backup, and prunes if its proof succeeds. The clocks of the node and of Kubernetes
// may be wrong. The clock of a bucket is right; a volume has that of the node.
func (w *retentionWalk) step(seed uint64, number int) {
	w.now = w.now.Add(time.Duration(1+w.dice.IntN(40)) * time.Hour)
	node := w.pick(0, 0, 0, 10*day, -10*day, 365*day)
	kubernetes, store := w.pick(0, 0, 0, 0, 365*day), time.Duration(0)
	if w.volume {
		kubernetes, store = 0, node
	}
	if w.dice.IntN(12) == 0 {
		w.uid = fmt.Sprint("u", number) // the cluster is created again
	}
	of := manifest.Owner{Namespace: "ns", Name: "c", UID: w.uid}
	place := manifest.Place{Layout: manifest.LayoutDirectory, Key: "backups/etcd", Owner: of}
	started := w.now.Add(kubernetes).Truncate(time.Second)
	key := place.SnapshotKey(fmt.Sprint(number), started, int64(number), "", "")
	modified := w.now.Add(store)
	w.plant(key, modified)
	if w.dice.IntN(4) == 0 {
		w.log = append(w.log, fmt.Sprintf("%d is disproved", number))
		return // nothing follows, as in a pod
	}
	m := &manifest.Manifest{
		FormatVersion: manifest.FormatVersion, ID: "id", Object: "snapshot.db", Layout: place.Layout, Owner: of, BackupUID: "mine", Revision: int64(number),
		Size: 1, SHA256: sum, StoredSize: 1, StoredSHA256: sum, StartedAt: started, FinishedAt: w.now.Add(node),
	}
	raw, err := m.Encode()
	manifestKey := place.Layout.ManifestKey(key)
	name := filepath.Join(w.dir, manifestKey)
	if err = errors.Join(err, os.WriteFile(name, raw, 0o600), os.Chtimes(name, modified, modified)); err != nil {
		w.t.Fatal(err)
	}
	w.backups = append(w.backups, kept{manifestKey, w.now, w.uid})
	w.log = append(w.log, fmt.Sprintf("%d of %s at %s, node %s, Kubernetes %s", number, w.uid, w.now.Format(time.DateTime), node, kubernetes))
	w.prune.Owner = of
	w.runner.Clock = clocktesting.NewFakePassiveClock(w.now.Add(node))
	prune := w.prune
	request := &agent.Request{ID: "id", Store: w.storePlace("backups/etcd"), Prune: &prune}
	if !w.volume {
		request.Store.VolumeDir = ""
	}
	run := &run{Runner: w.runner, request: request, result: &agent.Result{}, store: w.store}
	run.conclude(w.t.Context(), &manifest.Stored{Key: manifestKey, Manifest: m})
	if run.result.Warning != "" {
		w.t.Fatalf("seed %d: %s", seed, run.result.Warning)
	}
	w.check(seed)
}

const sum = "abababababababababababababababababababababababababababababababab"

// check compares the backups that remain with the rules, by true times.
func (w *retentionWalk) check(seed uint64) {
	w.t.Helper()
	there := w.objects()
	newest := len(w.backups) - 1
	before := newest
	for before >= 0 && w.backups[before].uid == w.backups[newest].uid {
		before--
	}
	var left []kept
	for i, b := range w.backups {
		if slices.Contains(there, b.key) {
			left = append(left, b)
			continue
		}
		tooMany := w.prune.Count > 0 && newest-i >= int(w.prune.Count) && i != before
		tooOld := w.prune.MaxAgeSeconds > 0 && w.now.Sub(b.at) > time.Duration(w.prune.MaxAgeSeconds)*time.Second
		if i == newest || !tooMany && !tooOld {
			for _, line := range w.log {
				w.t.Log(line)
			}
			w.t.Fatalf("seed %d: %s of %s is deleted at %s, rank %d, %+v", seed, b.key, b.at.Format(time.DateTime), w.now.Format(time.DateTime), newest-i, w.prune)
		}
	}
	w.backups = left
}

// TestRetentionKeepsWhatTheRulesKeep is deterministic: a seed that fails can be tried alone.
func TestRetentionKeepsWhatTheRulesKeep(t *testing.T) {
	lives, made, gone := uint64(60), 0, 0
	for seed := range lives {
		b := newBench(t, nil)
		dice := rand.New(rand.NewPCG(seed, 11))
		w := &retentionWalk{bench: b, dice: dice, now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), uid: "u", volume: seed%2 == 1}
		w.prune = agent.Prune{Layout: manifest.LayoutDirectory, BackupUID: "mine", Count: int32(dice.IntN(5)), MaxAgeSeconds: int64(dice.IntN(3)*7) * int64(day/time.Second)}
		other := b.keep(manifest.Owner{Namespace: "ns", Name: "c", UID: "elsewhere"}, "another", w.now.Add(-100*day), 1)
		for number := range 40 {
			w.step(seed, number+1)
		}
		if w.left([]string{other}) != "1" {
			t.Fatalf("seed %d: the backup of another EtcdBackup is deleted", seed)
		}
		made, gone = made+40, gone+40-len(w.backups)
	}
	t.Logf("seeds 0 to %d: %d attempts, %d are left out or pruned", lives-1, made, gone)
	if gone < made/3 {
		t.Error("hardly anything was pruned: nothing was tested")
	}
}
