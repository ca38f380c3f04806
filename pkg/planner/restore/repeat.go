// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ruleRepeated ends a restore that a cluster has carried out before. A tool that keeps manifests applied creates an
// EtcdRestore again long after it was deleted, and clients have written since then. After a proven permanent loss of the
// quorum nothing else brings the cluster back: many users have one manifest for such a day, and apply it each time.
// A quorum that is only out of reach comes back with what clients have written. Then the restore ends, too: one that
// waited would begin by itself after the next loss.
func ruleRepeated(o *Observed) (Plan, bool) {
	earlier := o.repeated()
	if earlier == nil || o.isPermanentlyLost() {
		return Plan{}, false
	}
	return Plan{Phase: v1beta2.RestorePhaseVerifying}.failed(ReasonAlreadyRestored, fmt.Sprintf(
		"EtcdCluster %s was left as it is: EtcdRestore %s asked for the same with UID %s, and the cluster has that data since %s. "+
			"To restore it again would discard %s. To do so, delete this EtcdRestore, and create it with another spec or with the annotation %s=VALUE. "+
			"VALUE is any text that no earlier request had. While the quorum is permanently lost (status.permanentQuorumLossSince is set), an EtcdRestore that is created again needs neither",
		o.Cluster.Name, earlier.Name, earlier.UID, earlier.Time.UTC().Format(time.RFC3339), o.writtenSince(earlier), v1beta2.AnnotationRestoreAgain)), true
}

// repeated returns the restore by an earlier EtcdRestore of the same name that asked for the same; nil if there was none.
func (o *Observed) repeated() *v1beta2.ClusterRestore {
	if o.Cluster == nil {
		return nil
	}
	restores := o.Cluster.Status.Restores
	i := slices.IndexFunc(restores, func(r v1beta2.ClusterRestore) bool {
		return r.Time != nil && r.UID != o.id() && r.Name == o.Restore.Name && r.Request == request(o.Restore)
	})
	if i < 0 {
		return nil
	}
	return &restores[i]
}

// isPermanentlyLost is true while the controller has proof that the quorum cannot come back.
func (o *Observed) isPermanentlyLost() bool { return o.Cluster.Status.PermanentQuorumLossSince != nil }

// writtenSince says what clients have written since a restore, as far as a backup tells.
func (o *Observed) writtenSince(r *v1beta2.ClusterRestore) string {
	text := "everything that clients have written since then"
	last := o.Cluster.Status.LastBackup
	if last == nil || !last.Time.After(r.Time.Time) {
		return text
	}
	if n := last.Revision - r.Revision - r.RevisionBump; n > 0 && r.Revision > 0 { // 0: only the record has kept it
		text += fmt.Sprintf(", which was %d revisions at the last backup, EtcdBackup %s of %s", n, last.Name, last.Time.UTC().Format(time.RFC3339))
	}
	return text
}

// request is a hash of what an EtcdRestore asks for: which data, and the annotation that asks for it again. The
// fields that say how the data is fetched do not count.
func request(r *v1beta2.EtcdRestore) string {
	raw, err := json.Marshal(struct {
		Backup  *v1beta2.BackupReference  `json:"backup,omitempty"`
		Storage v1beta2.BackupStorageType `json:"storage,omitempty"`
		Source  v1beta2.RestoreSource     `json:"source"`
		Bump    *int64                    `json:"bump,omitempty"`
		Again   string                    `json:"again,omitempty"`
	}{r.Spec.Backup, r.Spec.BackupStorageType, r.Spec.RestoreSource, r.Spec.RevisionBump, r.Annotations[v1beta2.AnnotationRestoreAgain]})
	if err != nil {
		return "" // it holds strings and numbers, which can always be written
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// withRestore returns what the status of the cluster tells of its restores after this restore is requested. Its time
// follows when the cluster has the data.
func (o *Observed) withRestore(revision int64) []v1beta2.ClusterRestore {
	made := v1beta2.ClusterRestore{Name: o.Restore.Name, UID: o.id(), Request: request(o.Restore), Revision: revision, RevisionBump: o.bump(revision)}
	if b := o.Restore.Spec.Backup; b != nil {
		made.Backup = b.Name
	}
	restores := append([]v1beta2.ClusterRestore{made}, o.Cluster.Status.Restores...)
	return restores[:min(len(restores), v1beta2.MaxClusterRestores)]
}
