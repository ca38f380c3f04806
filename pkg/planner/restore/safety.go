// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// copyLife is how old a safety copy may be when the cluster is asked: what was
	// written since is not in it.
	copyLife = 15 * time.Minute
	// lossGrace is how long nobody must have answered before a cluster whose members
	// are still there is restored without a copy: they may be starting.
	lossGrace = 30 * time.Second
	// safetySuffix is what the name and the place of a safety copy have more.
	safetySuffix  = "-safety"
	copyHash      = 10
	maxObjectName = 253
)

// safety has the data that the cluster has now stored before it is replaced: an EtcdBackup
// like any other makes the copy. Without one the cluster is asked only if it never had
// data, or if no member is there that could be copied.
func safety(o *Observed) (Plan, bool) {
	if o.Cluster == nil || !o.served() || o.safe() {
		return Plan{}, false
	}
	plan := Plan{Phase: v1beta2.RestorePhaseVerifying, Revision: o.newest().Outcome.Revision}
	if silent, wait := o.silent(); silent {
		plan.Wait = wait
		return plan, wait != nil
	}
	want, wait := o.safetyCopy()
	if wait != nil {
		plan.Wait = wait
		return plan, true
	}
	b := o.Safety
	switch {
	case b == nil:
		plan.Action, plan.Copy = ActionCopy, want
		plan.Wait = &Wait{Reason: "SafetyCopy", Message: fmt.Sprintf("EtcdBackup %s is to store the data that the cluster has now", want.Name)}
	case b.DeletionTimestamp != nil:
		plan.Wait = &Wait{Reason: "SafetyCopyFailed", Message: fmt.Sprintf("nothing was touched: EtcdBackup %s is being deleted; when it is gone, it is made again", b.Name)}
	case b.Spec.EtcdCluster == nil || b.Spec.EtcdCluster.Name != o.Cluster.Name:
		plan.Wait = &Wait{Reason: "SafetyCopyFailed", Message: fmt.Sprintf("EtcdBackup %s is not a backup of EtcdCluster %s: delete it", b.Name, o.Cluster.Name)}
	case b.Spec.BackupPolicy != nil && b.Spec.BackupPolicy.Suspend:
		return Plan{}, false // somebody has said that the copy is not wanted
	case b.Status.Succeeded:
		// Written down first: what follows is decided on it.
		plan.Copied = &v1beta2.RestoreSafetyCopy{
			Backup: b.Name, Revision: b.Status.EtcdRevision, Time: b.Status.LastSuccessDate, URI: b.Status.URI,
		}
		plan.Wait = &Wait{Reason: "SafetyCopy", Message: fmt.Sprintf("EtcdBackup %s has stored the data that the cluster has now", b.Name)}
		plan.RequeueAfter = time.Second
	default:
		plan.Wait = copying(b)
	}
	return plan, true
}

// safe is true if there is a copy of what the cluster has now, or nearly now.
func (o *Observed) safe() bool {
	c := o.Restore.Status.SafetyCopy
	if c == nil || o.Now.Sub(c.Time.Time) > copyLife || c.Time.Before(&o.Cluster.CreationTimestamp) {
		return false // it is of another time, or of a cluster that had the name before
	}
	r := o.Cluster.Status.Recovery
	return r == nil || r.CompletionTime == nil || r.CompletionTime.Before(&c.Time) // a restore since then has changed everything
}

// copying says how it goes with a copy that is not there yet.
func copying(b *v1beta2.EtcdBackup) *Wait {
	const without = "; to restore without a copy set spec.backupPolicy.suspend of that EtcdBackup"
	text := fmt.Sprintf("EtcdBackup %s stores the data that the cluster has now", b.Name)
	progress := meta.FindStatusCondition(b.Status.Conditions, backup.ConditionProgressing)
	switch {
	case b.Status.Phase == v1beta2.BackupPhaseFailed:
		return &Wait{Reason: "SafetyCopyFailed", Message: fmt.Sprintf("nothing was touched: EtcdBackup %s could not store the data that the cluster has now%s; "+
			"mend its store, or name another one in spec.backup of the cluster%s", b.Name, failure(b), without)}
	case progress == nil || progress.Reason == "Running":
		return &Wait{Reason: "SafetyCopy", Message: text}
	case progress.Reason == ReasonRefused:
		return &Wait{Reason: ReasonRefused, Message: text + because(progress.Message) + without}
	default:
		return &Wait{Reason: "SafetyCopy", Message: text + because(progress.Message) + without}
	}
}

// failure says why a copy could not be made, and whether that is tried again.
func failure(b *v1beta2.EtcdBackup) string {
	text := because(b.Status.Reason)
	if c := meta.FindStatusCondition(b.Status.Conditions, backup.ConditionSucceeded); c != nil && c.Status == metav1.ConditionFalse {
		text = because(c.Reason) + text
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, backup.ConditionProgressing); c != nil && c.Message != "" {
		text += "; " + c.Message
	}
	return text
}

// silent is true if no member answers that could be copied. The wait is what is to come
// before that is believed; nil if it is.
func (o *Observed) silent() (bool, *Wait) {
	status := &o.Cluster.Status
	left := len(status.MemberStatuses) == 0
	for i := range status.MemberStatuses {
		m := &status.MemberStatuses[i]
		if m.Healthy == corev1.ConditionTrue || m.RaftIndex > 0 {
			return false, nil
		}
		left = left || m.Pod != "" || m.Claim != ""
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != v1beta2.ClusterConditionQuorumLost || c.Status != corev1.ConditionTrue {
			continue
		}
		since, err := time.Parse(time.RFC3339, c.LastTransitionTime)
		if left && err == nil && o.Now.Sub(since) < lossGrace {
			return true, &Wait{Reason: "WaitingForMember", Message: fmt.Sprintf(
				"no member answers whose data could be copied before it is replaced; in %s the cluster is restored without", lossGrace)}
		}
		return true, nil
	}
	return false, nil // it is not proved: the EtcdBackup waits for a member
}

// SafetyCopyName is the name of the EtcdBackup that stores the data that the cluster has
// now; empty if none is needed, or if it cannot be told where it goes.
func (o *Observed) SafetyCopyName() string {
	if o.Cluster == nil || !o.served() || o.asked() || o.ended() || o.Restore.Spec.Backup != nil && o.Backup == nil {
		return ""
	}
	want, wait := o.safetyCopy()
	if wait != nil {
		return ""
	}
	return want.Name
}

// safetyCopy returns the EtcdBackup that stores the data that the cluster has now: where
// the cluster has its backups, else beside the backup that is restored. It is nobody's, so
// that it stays when the restore is deleted.
func (o *Observed) safetyCopy() (*v1beta2.EtcdBackup, *Wait) {
	spec, wait := o.safetySpec()
	if wait != nil {
		return nil, wait
	}
	// Where it goes may be mended, a copy grows old, and a cluster may be made anew under
	// its name: each has a name of its own.
	seed := struct {
		UID, Cluster string
		Spec         *v1beta2.BackupSpec
		Before       *v1beta2.RestoreSafetyCopy
	}{o.id(), string(o.Cluster.UID), spec, o.Restore.Status.SafetyCopy}
	raw, err := json.Marshal(seed)
	if err != nil {
		return nil, &Wait{Reason: "InvalidRequest", Message: err.Error()}
	}
	sum := sha256.Sum256(raw)
	suffix := safetySuffix + "-" + hex.EncodeToString(sum[:])[:copyHash]
	name := o.Restore.Name
	name = strings.TrimRight(name[:min(len(name), maxObjectName-len(suffix))], "-.")
	b := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name + suffix, Namespace: o.Restore.Namespace, Annotations: map[string]string{
			resources.AnnotationSafetyCopy: o.Restore.Name,
		}},
		Spec: *spec,
	}
	if scope, found := o.Cluster.Annotations[scopeAnnotation]; found {
		b.Annotations[scopeAnnotation] = scope
	}
	return b, nil
}

// safetySpec says where a safety copy goes, and how it is stored: never less protected than
// the backups are.
func (o *Observed) safetySpec() (*v1beta2.BackupSpec, *Wait) {
	var spec v1beta2.BackupSpec
	switch {
	case o.Cluster.Spec.Backup != nil:
		spec = backup.SpecOfCluster(o.Cluster)
		spec.BackupPolicy = nil
		return &spec, nil
	case o.Restore.Spec.Backup != nil:
		from := o.Backup.Spec.DeepCopy()
		spec = v1beta2.BackupSpec{
			StorageType: from.StorageType, BackupSource: from.BackupSource, Compression: from.Compression, Encryption: from.Encryption,
			ServiceAccountName: from.ServiceAccountName,
		}
	case o.Restore.Spec.Decryption != nil:
		return nil, &Wait{Reason: "NoPlaceForSafetyCopy", Message: "the backup is encrypted, and a copy of the data that the cluster has now shall be, too: " +
			"name the place and the recipients in spec.backup of the cluster"}
	default:
		from := o.Restore.Spec.RestoreSource.DeepCopy()
		spec = v1beta2.BackupSpec{
			StorageType: o.Restore.Spec.BackupStorageType, ServiceAccountName: o.Restore.Spec.ServiceAccountName,
			BackupSource: v1beta2.BackupSource{
				S3: (*v1beta2.S3BackupSource)(from.S3), ABS: from.ABS, GCS: from.GCS, OSS: from.OSS,
				PersistentVolumeClaim: from.PersistentVolumeClaim,
			},
		}
	}
	spec.EtcdCluster = &v1beta2.EtcdClusterRef{Name: o.Cluster.Name}
	spec.Job = o.jobPolicy().DeepCopy()
	aside(&spec.BackupSource)
	return &spec, nil
}

// aside moves a place beside itself: nobody who reads there finds a copy for a backup.
func aside(s *v1beta2.BackupSource) {
	switch {
	case s.S3 != nil:
		s.S3.Path += safetySuffix
	case s.ABS != nil:
		s.ABS.Path += safetySuffix
	case s.GCS != nil:
		s.GCS.Path += safetySuffix
	case s.OSS != nil:
		s.OSS.Path += safetySuffix
	case s.PersistentVolumeClaim != nil:
		path := s.PersistentVolumeClaim.Path
		s.PersistentVolumeClaim.Path = cmp.Or(path, "backups") + safetySuffix
	}
}
