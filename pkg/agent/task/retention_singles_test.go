// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
)

// addSingle makes an EtcdBackup with a TTL, whose data stays in the store whatever happens.
func (w *retentionWalk) addSingle() {
	b := w.newBackup(fmt.Sprint("single", w.number), nil)
	b.Spec.TTL = &v1beta2.Duration{Duration: pick(w, day, 7*day, 30*day)}
	if w.dice.IntN(3) == 0 {
		b.Spec.Hold = ptr.To(true)
	}
	w.revision++
	key, now := fmt.Sprintf("etcd/%s/v1/ns/c-%s/x/snapshot.db", b.Name, w.cluster.UID), metav1.NewTime(w.kubernetes())
	w.shelf.objects[key], w.notOwned[key] = &onShelf{}, true
	w.shelf.objects[key].Key, w.shelf.objects[key].Size = key, 1
	b.Status = v1beta2.BackupStatus{
		Phase: v1beta2.BackupPhaseSucceeded, Succeeded: true, Verified: true, EtcdRevision: w.revision, URI: "s3://bucket/" + key,
		Attempts: 1, LastScheduleTime: &now, StartTime: &now, CompletionTime: &now, LastSuccessDate: now, ObservedGeneration: b.Generation,
	}
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: backup.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "Complete", LastTransitionTime: now})
	w.singles = append(w.singles, b)
}

// expireSingles does what the controller does with those whose TTL is over.
func (w *retentionWalk) expireSingles() {
	for _, b := range slices.Clone(w.singles) {
		all, now := append(slices.Clone(w.singles), w.backup), w.kubernetes()
		o := backup.Observed{Now: now, Backup: b, Needed: backup.Needed(b, w.openRestores(), all, w.cluster, now)}
		if backup.Decide(o).Action != backup.ActionExpire {
			continue
		}
		newer := slices.ContainsFunc(all, func(other *v1beta2.EtcdBackup) bool {
			return other != b && !other.Status.LastSuccessDate.Before(&b.Status.LastSuccessDate)
		})
		if b.IsHeld() || !newer {
			w.fail("EtcdBackup %s expires: held %t, a newer one exists %t", b.Name, b.IsHeld(), newer)
		}
		w.expired++
		w.singles = slices.DeleteFunc(w.singles, func(s *v1beta2.EtcdBackup) bool { return s == b })
	}
}

// settle lets more than a year go by in which nothing is wrong, and checks what is stored then.
func (w *retentionWalk) settle() {
	w.calm, w.ahead, w.shelf.fault, w.zombies = true, clocks{}, faultNone, nil
	w.backup.Spec.Hold, w.backup.Spec.HeldSnapshots = ptr.To(false), nil
	for _, b := range w.singles {
		b.Spec.Hold = ptr.To(false)
	}
	for end := w.now.Add(year + 90*day); w.now.Before(end); w.now = w.now.Add(w.every) {
		w.changeRestores()
		w.reconcile()
		w.expireSingles()
	}
	if len(w.restores) > 0 || w.cluster.Status.Recovery.IsInProgress() {
		w.fail("%d restores have not ended", len(w.restores))
	}
	if len(w.singles) > 0 {
		w.fail("%d single EtcdBackups stay whose TTL is over, such as %s", len(w.singles), w.singles[0].Name)
	}
	w.checkDeleted()
}
