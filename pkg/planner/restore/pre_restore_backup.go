// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// lossGrace is how long no member must have responded before a cluster whose pods or
	// PVCs exist is restored without a pre-restore backup: members may be starting. If one has
	// responded since the restore began, only a user lets it continue without.
	lossGrace = 30 * time.Second
	// confirmPause is how long after a pre-restore backup that no quorum confirmed another is made: an election takes less.
	// Each further pause is half as long as the restore has lasted, up to maxConfirmPause: each backup is a full copy.
	confirmPause, maxConfirmPause = 30 * time.Second, 15 * time.Minute
	// preRestoreSuffix follows the name and the location of a pre-restore backup.
	preRestoreSuffix = "-pre-restore"
	copyHash         = 10
	maxObjectName    = 253
)

// rulePreRestoreBackup has an EtcdBackup store the current data of the cluster before a restore
// replaces it. Without that backup the restore continues only if the cluster never had
// data, if no member exists that could send a snapshot, or if a user suspends the backup.
func rulePreRestoreBackup(o *Observed) (Plan, bool) {
	if o.Cluster == nil || !o.isServed() || o.hasPreRestoreBackup() {
		return Plan{}, false
	}
	return o.backUp(Plan{Phase: v1beta2.RestorePhaseVerifying, Revision: o.newest().Outcome.Revision})
}

// backUpMeanwhile has the pre-restore backup begin while the first attempt reads the backup, because both take a pod and
// neither needs the other. A backup that turns out bad leaves it behind, so later attempts make none. A volume may be
// usable on one node at a time, so that one of them would wait for the other.
func (o *Observed) backUpMeanwhile(plan Plan, place *v1beta2.BackupPlace, j *Job) Plan {
	if j.Attempt > 1 || j.Unstarted() != nil || place.PersistentVolumeClaim != nil || o.Cluster == nil || !o.isServed() || !o.responds() || o.PreRestore != nil || o.hasPreRestoreBackup() || o.obstacle() != nil {
		return plan
	}
	if made, wait := o.newPreRestoreBackup(); wait == nil && made.Spec.PersistentVolumeClaim == nil {
		plan.Action, plan.Copy = ActionBackUpFirst, made
	}
	return plan
}

// isAskedForBackup is true if the cluster, with a recovery member that serves, waits for a pre-restore backup that has what
// its members have accepted since the last one. A recovery member may have had no room for days.
func (o *Observed) isAskedForBackup(r *v1beta2.RecoveryStatus) bool {
	b := o.Cluster.Status.BlockedBy
	return b != nil && b.Reason == v1beta2.ReasonPreRestoreBackupTooOld && !r.Cancelled && !o.hasPreRestoreBackup() &&
		(r.Phase == v1beta2.RecoveryPhaseFilling || r.Phase == v1beta2.RecoveryPhaseCutover)
}

// backUp is the plan until a pre-restore backup is stored. It returns false if none is made.
func (o *Observed) backUp(plan Plan) (Plan, bool) {
	if unresponsive, wait := o.unresponsive(); unresponsive {
		plan.Wait = wait
		return plan, wait != nil
	}
	made, wait := o.newPreRestoreBackup()
	if wait != nil {
		plan.Wait = wait
		return plan, true
	}
	b := o.PreRestore
	switch {
	case isSuspended(b):
		return Plan{}, false // a user has suspended it: restore without a pre-restore backup
	case o.untilAnotherBackup() > 0:
		newer := "a quorum responds, which may have newer writes"
		if !o.hasQuorum() {
			newer = o.unstored(o.Restore.Status.PreRestoreBackup.RaftIndex)
		}
		plan.RequeueAfter = o.untilAnotherBackup()
		plan.Wait = &Wait{Reason: ReasonPreRestoreBackup, Message: fmt.Sprintf("no quorum confirmed what EtcdBackup %s has stored, and %s; another EtcdBackup follows within %s",
			o.Restore.Status.PreRestoreBackup.Backup, newer, maxConfirmPause) + withoutBackup}
	case b == nil:
		plan.Action, plan.Copy = ActionBackUpFirst, made
		plan.Wait = &Wait{Reason: ReasonPreRestoreBackup, Message: fmt.Sprintf("EtcdBackup %s will store the current data of the cluster", made.Name)}
	case b.DeletionTimestamp != nil:
		plan.Wait = &Wait{Reason: ReasonPreRestoreBackupFailed, Message: fmt.Sprintf("nothing was changed: EtcdBackup %s is being deleted; it is created again afterwards", b.Name)}
	case b.Spec.EtcdCluster == nil || b.Spec.EtcdCluster.Name != o.Cluster.Name:
		plan.Wait = &Wait{Reason: ReasonPreRestoreBackupFailed, Message: fmt.Sprintf("EtcdBackup %s is not a backup of EtcdCluster %s: delete it", b.Name, o.Cluster.Name)}
	case b.Status.Succeeded:
		// The status records the backup first: the next step is decided from the status.
		plan.Copied = &v1beta2.PreRestoreBackup{
			Backup: b.Name, Revision: b.Status.EtcdRevision, Time: b.Status.LastSuccessDate, URI: b.Status.URI,
			Unconfirmed: b.Status.Unconfirmed, RaftIndex: b.Status.RaftIndex, DataDiffers: b.Status.DataDiffers,
		}
		plan.Wait = &Wait{Reason: ReasonPreRestoreBackup, Message: fmt.Sprintf("EtcdBackup %s has stored the current data of the cluster", b.Name)}
		plan.RequeueAfter = time.Second
	default:
		plan.Wait = backupProgress(b)
	}
	return plan, true
}

// untilAnotherBackup is how long the next pre-restore backup waits after one that no quorum confirmed.
func (o *Observed) untilAnotherBackup() time.Duration {
	c := o.Restore.Status.PreRestoreBackup
	if c == nil || !c.Unconfirmed {
		return 0
	}
	pause := confirmPause
	if start := o.Restore.Status.StartTime; start != nil {
		pause = min(max(pause, c.Time.Sub(start.Time)/2), maxConfirmPause)
	}
	return min(c.Time.Add(pause).Sub(o.Now), pause) // a clock that was set back does not make it longer
}

// hasPreRestoreBackup is true if a pre-restore backup holds the current data, or nearly. While a quorum responds, one that
// no quorum confirmed does not count. Without a quorum there is no better one: the PVCs of the old members are kept, and
// no member without a PVC may have more.
func (o *Observed) hasPreRestoreBackup() bool {
	c := o.Restore.Status.PreRestoreBackup
	if !c.IsFresh(o.Now) || c.Time.Time.Before(resources.CreatedAt(o.Cluster, o.Now)) {
		return false // too old, or of an earlier cluster with this name
	}
	if c.Unconfirmed && (o.hasQuorum() || o.unstored(c.RaftIndex) != "") {
		return false
	}
	r := o.Cluster.Status.Recovery
	// A recovery since then has changed everything. One of the future ended before a clock was set back.
	return r == nil || r.CompletionTime == nil || r.CompletionTime.Before(&c.Time) || resources.IsFuture(r.CompletionTime.Time, o.Now)
}

// preRestoreBackup returns the pre-restore backup of the status: the one that was made now, if any. Etcd may find only after
// it began that the data of the members differs. Once the members say so it stays true: they do not respond until the end.
// Nor does a disarmed alarm say that the backup is of a member with the right data.
func (o *Observed) preRestoreBackup(made *v1beta2.PreRestoreBackup) *v1beta2.PreRestoreBackup {
	before := o.Restore.Status.PreRestoreBackup
	b := cmp.Or(made, before).DeepCopy()
	if b != nil {
		b.DataDiffers = b.DataDiffers || before != nil && before.DataDiffers || o.dataDiffers()
	}
	return b
}

// dataDiffers is true if a member that the restore replaces says that the data of the members differs (alarm CORRUPT). After
// the cutover it is not about these any more: the alarm may be one of the backup that was restored.
func (o *Observed) dataDiffers() bool {
	r := o.recovery()
	replaces := r == nil || isReversible(r) || r.Phase == v1beta2.RecoveryPhaseCutover
	return replaces && o.Cluster != nil && diagnosis.FromStatus(o.Cluster, resources.RevisionGoesBack).DataDiffers
}

// unstored says what a backup may lack that has the log up to an index; empty if nothing. See diagnosis.Cluster.
func (o *Observed) unstored(index int64) string {
	_, since := o.quorumLost()
	facts := diagnosis.FromStatus(o.Cluster, resources.RevisionGoesBack)
	return cmp.Or(facts.Newer(index), facts.Unstored(since))
}

// quorumLost is true if the last status says that the quorum is lost, and for how long it has been.
func (o *Observed) quorumLost() (lost bool, since time.Duration) {
	return diagnosis.QuorumLostFor(&o.Cluster.Status, o.Now)
}

// withoutBackup tells how a user lets the restore go on.
const withoutBackup = "; to restore without a pre-restore backup, set spec.backupPolicy.suspend of that EtcdBackup, which keeps the PVCs of the old members"

// backupProgress reports the progress of a pre-restore backup that is not stored yet.
func backupProgress(b *v1beta2.EtcdBackup) *Wait {
	text := fmt.Sprintf("EtcdBackup %s stores the current data of the cluster", b.Name)
	progress := meta.FindStatusCondition(b.Status.Conditions, backup.ConditionProgressing)
	switch {
	case b.Status.Phase == v1beta2.BackupPhaseFailed:
		return &Wait{Reason: ReasonPreRestoreBackupFailed, Message: fmt.Sprintf("nothing was changed: EtcdBackup %s could not store the current data of the cluster%s; "+
			"repair its backup location, and delete that EtcdBackup. It is made again at once, also if you set another location in spec.backup of the cluster%s", b.Name, failure(b), withoutBackup)}
	case progress == nil || progress.Reason == backup.ReasonRunning:
		return &Wait{Reason: ReasonPreRestoreBackup, Message: text}
	case progress.Reason == ReasonRejected:
		return &Wait{Reason: ReasonRejected, Message: text + job.WithCause(progress.Message) + withoutBackup}
	default:
		return &Wait{Reason: ReasonPreRestoreBackup, Message: text + job.WithCause(progress.Message) + withoutBackup}
	}
}

// failure says why a pre-restore backup failed, and whether it is tried again.
func failure(b *v1beta2.EtcdBackup) string {
	text := job.WithCause(b.Status.Reason)
	if c := meta.FindStatusCondition(b.Status.Conditions, backup.ConditionSucceeded); c != nil && c.Status == metav1.ConditionFalse {
		text = job.WithCause(c.Reason) + text
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, backup.ConditionProgressing); c != nil && c.Message != "" {
		text += "; " + c.Message
	}
	return text
}

// isSuspended is true for a pre-restore backup that a user does without.
func isSuspended(b *v1beta2.EtcdBackup) bool {
	return b != nil && b.Spec.BackupPolicy != nil && b.Spec.BackupPolicy.Suspend
}

// responds is true if a member of the cluster responds, by the last status.
func (o *Observed) responds() bool {
	return slices.ContainsFunc(o.Cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return diagnosis.HasResponded(&m) })
}

// hasSeenData is true if a member of the cluster has responded since the restore began, or might have when the pre-restore
// backup began: its data can be stored, or could have been.
func (o *Observed) hasSeenData() bool {
	return meta.IsStatusConditionTrue(o.Restore.Status.Conditions, ConditionPreRestoreBackupRequired) || o.PreRestore != nil || o.hasResponded()
}

// hasResponded is true if a member of the cluster has responded since the restore began, and until the cluster got the
// request.
func (o *Observed) hasResponded() bool {
	c := meta.FindStatusCondition(o.Restore.Status.Conditions, ConditionPreRestoreBackupRequired)
	if c != nil && c.Status == metav1.ConditionTrue && c.Reason == ReasonMemberResponded {
		return true
	}
	return o.Cluster != nil && o.isServed() && !o.isRequested() && o.recovery() == nil && o.responds()
}

// onlyIfUnresponsive is true if the cluster has data and nothing stores it, because no member responds: a restore
// replaces that data only if that stays so.
func (o *Observed) onlyIfUnresponsive() bool {
	return o.isServed() && !o.hasPreRestoreBackup() && !isSuspended(o.PreRestore)
}

// unresponsive is true if no member responds that could send a snapshot. The wait is nil
// once that is certain.
func (o *Observed) unresponsive() (bool, *Wait) {
	status := &o.Cluster.Status
	if o.responds() {
		return false, nil
	}
	left := len(status.MemberStatuses) == 0 || slices.ContainsFunc(status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Pod != "" || m.Claim != "" })
	if left && o.hasSeenData() {
		return false, nil // it may come back: the EtcdBackup waits for it, or for a user
	}
	lost, since := o.quorumLost()
	switch {
	case !lost:
		return false, nil // not certain: the EtcdBackup waits for a member
	case left && since < lossGrace:
		return true, &Wait{Reason: ReasonWaitingForMember, Message: fmt.Sprintf(
			"no member responds, so a pre-restore backup is not possible; in %s the cluster is restored without one", lossGrace)}
	}
	if unstored := o.unstored(0); unstored != "" {
		return true, &Wait{Reason: ReasonWaitingForMember, Message: "no member responds, so a pre-restore backup is not possible, and " + unstored +
			"; to restore at once without its writes, delete the pod of that member"}
	}
	return true, nil
}

// PreRestoreBackupName is the name of the EtcdBackup that stores the current data of the
// cluster; empty if none is needed, or if its location is unknown.
func (o *Observed) PreRestoreBackupName() string {
	r := o.recovery()
	if o.Cluster == nil || !o.isServed() || o.hasEnded() || o.isRequested() && (r == nil || !o.isAskedForBackup(r)) || o.Restore.Spec.Backup != nil && o.Backup == nil {
		return ""
	}
	made, wait := o.newPreRestoreBackup()
	if wait != nil {
		return ""
	}
	if o.untilAnotherBackup() > 0 {
		return o.Restore.Status.PreRestoreBackup.Backup // a user may suspend it meanwhile
	}
	return made.Name
}

// newPreRestoreBackup returns the EtcdBackup that stores the current data of the cluster:
// in the backup location of the cluster, else beside the backup that is restored. It has
// no owner, so that it stays when the restore is deleted.
func (o *Observed) newPreRestoreBackup() (*v1beta2.EtcdBackup, *Wait) {
	spec, wait := o.preRestoreBackupSpec()
	if wait != nil {
		return nil, wait
	}
	// A user may repair the location, a pre-restore backup may become too old, and a user
	// may create a cluster again under its name: each case has its own EtcdBackup.
	before := o.Restore.Status.PreRestoreBackup.DeepCopy()
	if before != nil {
		before.DataDiffers = false // etcd may find it while the EtcdBackup is made that follows, or is suspended
	}
	seed := struct {
		UID, Cluster string
		Spec         *v1beta2.BackupSpec
		Before       *v1beta2.PreRestoreBackup
	}{o.id(), string(o.Cluster.UID), spec, before}
	raw, err := json.Marshal(seed)
	if err != nil {
		return nil, &Wait{Reason: ReasonInvalidRequest, Message: err.Error()}
	}
	sum := sha256.Sum256(raw)
	suffix := preRestoreSuffix + "-" + hex.EncodeToString(sum[:])[:copyHash]
	name := o.Restore.Name
	name = strings.TrimRight(name[:min(len(name), maxObjectName-len(suffix))], "-.")
	b := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name + suffix, Namespace: o.Restore.Namespace, Annotations: map[string]string{
			resources.AnnotationPreRestoreBackup: o.Restore.Name,
		}},
		Spec: *spec,
	}
	if policy := o.Cluster.Spec.Backup.DeepCopy(); policy != nil {
		b.Spec.TTL = policy.TTL
	}
	if scope, found := o.Cluster.Annotations[scopeAnnotation]; found {
		b.Annotations[scopeAnnotation] = scope
	}
	return b, nil
}

// preRestoreBackupSpec says where a pre-restore backup goes and how it is stored: never
// less protected than the backups are.
func (o *Observed) preRestoreBackupSpec() (*v1beta2.BackupSpec, *Wait) {
	var spec v1beta2.BackupSpec
	switch {
	case o.Cluster.Spec.Backup != nil:
		spec = backup.SpecOfCluster(o.Cluster)
		spec.BackupPolicy, spec.TTL = nil, nil // the name of the EtcdBackup does not depend on its TTL
		return &spec, nil
	case o.Restore.Spec.Backup != nil && o.Backup == nil:
		return nil, &Wait{Reason: ReasonNoLocationForPreRestoreBackup, Message: fmt.Sprintf("EtcdBackup %s, whose location the pre-restore backup would use, does not exist: "+
			"set the backup location in spec.backup of the cluster", o.Restore.Spec.Backup.Name)}
	case o.Restore.Spec.Backup != nil:
		from := o.Backup.Spec.DeepCopy()
		spec = v1beta2.BackupSpec{
			StorageType: from.StorageType, BackupSource: from.BackupSource, Compression: from.Compression, Encryption: from.Encryption,
			ServiceAccountName: from.ServiceAccountName,
		}
	case o.Restore.Spec.Decryption != nil:
		return nil, &Wait{Reason: ReasonNoLocationForPreRestoreBackup, Message: "the backup is encrypted, so the pre-restore backup must be encrypted, too: " +
			"set the backup location and the recipients in spec.backup of the cluster"}
	default:
		spec = v1beta2.BackupSpec{
			StorageType: o.Restore.Spec.BackupStorageType, ServiceAccountName: o.Restore.Spec.ServiceAccountName,
			BackupSource: backupSource(&o.Restore.Spec.RestoreSource),
		}
	}
	spec.EtcdCluster = &v1beta2.EtcdClusterRef{Name: o.Cluster.Name}
	spec.Job = o.preRestoreJob()
	aside(&spec.BackupSource)
	return &spec, nil
}

// aside appends preRestoreSuffix to a location, so that no reader takes the pre-restore backup
// for a backup.
func aside(s *v1beta2.BackupSource) {
	switch {
	case s.S3 != nil:
		s.S3.Path += preRestoreSuffix
	case s.ABS != nil:
		s.ABS.Path += preRestoreSuffix
	case s.GCS != nil:
		s.GCS.Path += preRestoreSuffix
	case s.OSS != nil:
		s.OSS.Path += preRestoreSuffix
	case s.PersistentVolumeClaim != nil:
		path := s.PersistentVolumeClaim.Path
		s.PersistentVolumeClaim.Path = cmp.Or(path, "backups") + preRestoreSuffix
	}
}
