// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

const sum = "abababababababababababababababababababababababababababababababab"

// walkRestore is an EtcdRestore, and the recovery that it asks for.
type walkRestore struct {
	r *v1beta2.EtcdRestore
	// reads is what it has verified; empty before.
	reads *madeBackup
	// deleted is true after a user has deleted the EtcdRestore: the recovery goes on.
	deleted, ended bool
}

func (w *retentionWalk) runner() *Runner {
	return &Runner{Clock: clocktesting.NewFakePassiveClock(w.now.Add(w.ahead.node)), Version: "test", Progress: &Progress{}}
}

// store stores a snapshot and its manifest as CommandSave does, which may be cut off between both.
func (w *retentionWalk) store(t *run) (*manifest.Stored, error) {
	save := t.request.Save
	place := manifest.Place{Layout: save.Layout, Key: t.request.Store.Key, Owner: save.Owner}
	w.revision += 1 + w.dice.Int64N(50)
	revision, unconfirmed := w.revision, w.chance(12)
	if unconfirmed { // a member that is cut off
		revision = max(1, revision-w.dice.Int64N(200))
	}
	key, err := t.freeKey(w.ctx, revision, place, snapshot.Options{})
	if err != nil {
		return nil, err
	}
	if err := objectstore.PutBytes(w.ctx, w.shelf, key, []byte("x"), objectstore.PutOptions{}); err != nil {
		return nil, errors.Join(err, w.shelf.Delete(w.ctx, key))
	}
	if w.chance(25) {
		return nil, errors.New("it is disproved, or the pod is ended")
	}
	m := &manifest.Manifest{
		FormatVersion: manifest.FormatVersion, ID: t.request.ID, Object: "snapshot.db", Layout: save.Layout, Owner: save.Owner, BackupUID: save.BackupUID,
		ClusterID: fmt.Sprint(w.restored), Revision: revision, Size: 1, SHA256: sum, StoredSize: 1, StoredSHA256: sum, Unconfirmed: unconfirmed,
		StartedAt: save.Started, FinishedAt: w.now.Add(w.ahead.node),
	}
	s := &manifest.Stored{Key: place.Layout.ManifestKey(key), Manifest: m}
	w.known[s.Key] = &madeBackup{
		key: s.Key, uid: save.Owner.UID, id: t.request.ID, uri: t.request.Store.URI(key), at: w.now, revision: revision, unconfirmed: unconfirmed, lineage: m.ClusterID,
		ahead: clocks{kubernetes: save.Started.Sub(w.now), node: w.ahead.node},
	}
	if err := t.putManifest(w.ctx, s); err != nil {
		return nil, errors.Join(err, t.takeBack(w.ctx, key, s, err))
	}
	w.made++
	return s, nil
}

func pick[T any](w *retentionWalk, from ...T) T { return from[w.dice.IntN(len(from))] }

// within is a time up to this long before or after.
func (w *retentionWalk) within(d time.Duration) time.Duration {
	return time.Duration(w.dice.Int64N(int64(2*d))) - d
}

// disturb changes the world between two looks of the controller.
func (w *retentionWalk) disturb() {
	w.shelf.fault = faultNone
	if w.chance(6) {
		w.shelf.fault = pick(w, faultPutLost, faultResponseLost, faultListLate, faultDeleteRejected, faultGetRots)
	}
	w.ahead = clocks{}
	if w.chance(4) {
		w.ahead.kubernetes = w.within(day)
	}
	if w.chance(4) {
		w.ahead.node = w.within(day)
	}
	if !w.jumped && w.chance(100) {
		w.jumped = true
		*pick(w, &w.ahead.kubernetes, &w.ahead.node) = pick(w, year, -year)
	}
	w.changeSpec()
	if w.chance(60) && !w.cluster.Status.Recovery.IsInProgress() {
		w.cluster = &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "c", UID: types.UID(fmt.Sprint("u", w.number)), CreationTimestamp: metav1.NewTime(w.kubernetes()),
		}}
		w.note("the cluster is created again as %s", w.cluster.UID)
	}
	if w.chance(60) && !w.cluster.Status.Recovery.IsInProgress() { // from what a member has left
		w.cluster.Status.Recovery = &v1beta2.RecoveryStatus{Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: metav1.NewTime(w.kubernetes().Add(-time.Minute)), CompletionTime: ptr.To(metav1.NewTime(w.kubernetes()))}
	}
	if w.chance(30) {
		if there := w.stored(); len(there) > 0 {
			b := pick(w, there...)
			b.rotten, w.shelf.objects[b.key].rotten = true, true
			w.note("%s rots", b.key)
		}
	}
	if w.chance(10) && len(w.zombies) > 0 {
		w.zombie = true
		w.note("a pod of a lost node goes on")
		w.runAgent(w.zombies[0])
		w.zombie, w.zombies = false, w.zombies[1:]
	}
	w.changeRestores()
	if w.chance(25) {
		w.addSingle()
	}
}

func (w *retentionWalk) changeSpec() {
	spec := &w.backup.Spec
	if w.chance(50) || spec.BackupPolicy.MaxBackups == 0 && spec.BackupPolicy.MaxAge == nil {
		spec.BackupPolicy.MaxBackups, spec.BackupPolicy.MaxAge = pick[int32](w, 0, 1, 2, 3, 7, 14), nil
		if age := pick(w, 0, 0, 14*day, 60*day, 200*day); age > 0 {
			spec.BackupPolicy.MaxAge = &v1beta2.Duration{Duration: age}
		}
		w.note("retention: %d, %v", spec.BackupPolicy.MaxBackups, spec.BackupPolicy.MaxAge)
	}
	if w.chance(40) || w.backup.IsHeld() && w.dice.IntN(5) == 0 {
		spec.Hold = ptr.To(!w.backup.IsHeld())
		w.note("hold: %t", *spec.Hold)
	}
	if there := w.stored(); w.chance(15) && len(there) > 0 {
		spec.HeldSnapshots = append(spec.HeldSnapshots, pick(w, there...).uri)
		w.note("held: %v", spec.HeldSnapshots)
	} else if w.chance(20) {
		spec.HeldSnapshots = nil
	}
	for _, s := range w.singles {
		if s.IsHeld() && w.dice.IntN(10) == 0 {
			s.Spec.Hold = ptr.To(false)
		}
	}
}

// isHeld is true of what a user holds. A pod on a lost node does not learn of it.
func (w *retentionWalk) isHeld(uri string) bool {
	return !w.zombie && (w.backup.IsHeld() || slices.Contains(w.backup.Spec.HeldSnapshots, uri))
}

// isNeeded is true of what a restore has verified, or a recovery reads.
func (w *retentionWalk) isNeeded(uri string) bool {
	return slices.ContainsFunc(w.restores, func(r *walkRestore) bool { return !r.ended && r.reads != nil && r.reads.uri == uri })
}

func (w *retentionWalk) openRestores() []*v1beta2.EtcdRestore {
	var open []*v1beta2.EtcdRestore
	for _, r := range w.restores {
		if !r.deleted {
			open = append(open, r.r)
		}
	}
	return open
}

// changeRestores begins, continues and ends restores. A user often wants the oldest backup.
func (w *retentionWalk) changeRestores() {
	there := w.stored()
	if len(w.restores) < 2 && w.chance(8) && len(there) > 0 {
		w.asked++
		name := fmt.Sprint("r", w.asked)
		r := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(w.kubernetes())}}
		switch named := pick(w, there[0], there[0], pick(w, there...), nil, nil); {
		case named != nil && w.dice.IntN(2) == 0:
			r.Spec.Backup = &v1beta2.BackupReference{Name: w.backup.Name, Revision: &named.revision}
		case named != nil:
			r.Spec.BackupStorageType, r.Spec.RestoreSource = v1beta2.BackupStorageTypeS3, placeOf(named.uri)
		case w.dice.IntN(2) == 0:
			r.Spec.Backup = &v1beta2.BackupReference{Name: w.backup.Name}
		default:
			r.Spec.BackupStorageType, r.Spec.RestoreSource = v1beta2.BackupStorageTypeS3, placeOf("s3://bucket/"+manifest.ClusterDir(path.Join(path.Dir(there[len(there)-1].key), "snapshot.db")))
		}
		w.restores = append(w.restores, &walkRestore{r: r})
		w.note("EtcdRestore %s of %v %v", r.Name, r.Spec.Backup, r.Spec.S3)
	}
	for _, r := range w.restores {
		if r.reads == nil || w.dice.IntN(3) > 0 && !w.calm {
			continue
		}
		current := w.cluster.Status.Recovery
		switch ours := current != nil && current.ID == string(r.r.UID); {
		case r.ended:
		case !ours && current.IsInProgress():
		case !ours:
			w.cluster.Status.Recovery = &v1beta2.RecoveryStatus{
				ID: string(r.r.UID), Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseFilling,
				Source: v1beta2.RecoverySource{Restore: r.r.Name, Backup: &v1beta2.BackupPlace{StorageType: v1beta2.BackupStorageTypeS3, RestoreSource: placeOf(r.reads.uri)}},
			}
			r.r.Status.Phase = v1beta2.RestorePhaseRestoring
		case w.chance(4):
			r.deleted = true
			w.note("EtcdRestore %s is deleted, and its recovery goes on", r.r.Name)
		default:
			current.Phase, current.CompletionTime = v1beta2.RecoveryPhaseSucceeded, ptr.To(metav1.NewTime(w.kubernetes()))
			w.cluster.Status.Restores = append([]v1beta2.ClusterRestore{{Time: current.CompletionTime}}, w.cluster.Status.Restores...)
			r.ended, w.revision = true, r.reads.revision
			w.restored++
			w.note("EtcdRestore %s has ended", r.r.Name)
		}
	}
	w.restores = slices.DeleteFunc(w.restores, func(r *walkRestore) bool { return r.ended })
}

func placeOf(uri string) v1beta2.RestoreSource {
	return v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: strings.TrimPrefix(uri, "s3://")}}
}

// advanceRestores reads the backups of restores that nothing endangers. What is read is needed from then on.
func (w *retentionWalk) advanceRestores() {
	for _, r := range w.restores {
		if r.reads != nil || r.ended {
			continue
		}
		uri := backup.URIOf(r.r.Spec.BackupStorageType, &r.r.Spec.RestoreSource)
		if from := r.r.Spec.Backup; from != nil {
			uri, _, _ = resources.BackupOfRevision(w.backup, from.Revision, w.cluster, w.kubernetes())
		}
		if w.isEndangered(uri) {
			continue
		}
		key, found := strings.CutPrefix(uri, "s3://bucket/")
		t := &run{Runner: w.runner(), request: &agent.Request{Store: &agent.Store{Type: v1beta2.BackupStorageTypeS3, Bucket: "bucket", Key: key}}, result: &agent.Result{}, store: w.shelf}
		located, err := t.find(w.ctx, key, agent.Expected{})
		if !found || err != nil || located.stored == nil {
			w.note("EtcdRestore %s fails: %q: %v", r.r.Name, uri, err)
			r.ended = true
			continue
		}
		if b := w.known[located.stored.Key]; !w.isEndangered(b.uri) {
			r.reads, r.r.Status.Revision, r.r.Status.Phase = b, b.revision, v1beta2.RestorePhaseVerifying
			w.note("EtcdRestore %s reads %s", r.r.Name, b.key)
		}
	}
	w.restores = slices.DeleteFunc(w.restores, func(r *walkRestore) bool { return r.ended })
}

// isEndangered is true while a pod may prune that does not know of the restore.
func (w *retentionWalk) isEndangered(uri string) bool {
	pruners := slices.Clone(w.zombies)
	for _, j := range w.jobs {
		if j.Outcome == nil {
			pruners = append(pruners, w.requests[j.Name])
		}
	}
	return slices.ContainsFunc(pruners, func(r *agent.Request) bool {
		return r.Prune != nil && (&job.Pruner{Request: r}).Endangers(uri)
	})
}
