// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

const (
	// placeRetry is when a backup that waits for a place looks again if no Job ends.
	placeRetry = 15 * time.Second
	// rejectedRetry is when a Job that Kubernetes rejected is created again.
	rejectedRetry = 5 * time.Second
	// writerRetry is when an attempt that waits for the end of a pod looks again.
	writerRetry = 5 * time.Second
	// startGrace is how long a Job counts as running although its pod has not started.
	startGrace = 15 * time.Second
)

// Config is what a Reconciler works with. Every field is required but Platform.
type Config struct {
	Cache    Cache
	Objects  Objects
	Gate     Gate
	Recorder Recorder
	Progress Progress
	Clock    clock.PassiveClock
	// AgentImage is the image of the Jobs.
	AgentImage string
	// Platform is what the installation says about every pod.
	Platform resources.Platform
	// Places are those of Jobs that run at once, over all clusters.
	Places share.Places
	// Responsible says whether an EtcdBackup, or the cluster that it is of, is this
	// controller's to look after.
	Responsible func(metav1.Object) bool
	// Wake puts a key back on the queue.
	Wake func(types.NamespacedName)
}

// Reconciler moves one EtcdBackup at a time a step on.
type Reconciler struct {
	Config
	held reconcile.Held
	// queue holds the backups that wait for a place. A restart empties it; they then ask again.
	queue *share.Queue
}

// NewReconciler returns a Reconciler, or an error that names what is missing.
func NewReconciler(c Config) (*Reconciler, error) {
	if c.Cache == nil || c.Objects == nil || c.Gate == nil || c.Recorder == nil || c.Progress == nil || c.Clock == nil ||
		c.AgentImage == "" || c.Places.Total < 1 || c.Responsible == nil || c.Wake == nil {
		return nil, errors.New("backup reconciler: every field of the configuration is required")
	}
	return &Reconciler{Config: c, queue: share.NewQueue(c.Places)}, nil
}

// Reconcile observes the EtcdBackup called key, does what the planner decides and
// writes the status if it changed. It returns when to be called again if nothing
// happens before. An error is something that went wrong and is tried again with
// back-off; waiting is not an error.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	b, err := r.Cache.Backup(key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		r.Gate.Forget(key)
		r.held.Forget(key)
		r.releaseReservation(key)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read backup from the cache: %w", err)
	}
	ready, err := r.held.IsReady(r.Gate, key, r.Clock.Now(), func() (metav1.Object, error) { return r.Objects.GetBackup(ctx, key.Namespace, key.Name) })
	if err != nil {
		return 0, err
	}
	if !ready {
		return reconcile.GateRetry, nil
	}
	r.queue.Seen(key)
	s, err := r.observe(ctx, b)
	if err != nil {
		return 0, err
	}
	if !r.isResponsible(s) {
		r.queue.End(key) // one that waits would go before others for ever
		return reconcile.ScopeRetry, nil
	}
	plan := planner.Decide(s.Observed)
	klog.FromContext(ctx).V(4).Info("Decided", "action", plan.Action, "attempt", plan.Attempt, "wait", plan.Wait)
	return r.act(ctx, key, s, plan)
}

// isResponsible goes by the cluster, so that a backup has the same controller; by the
// backup itself if it is of no cluster that is known.
func (r *Reconciler) isResponsible(s *seen) bool {
	if s.cluster != nil {
		return r.Responsible(s.cluster)
	}
	return r.Responsible(s.Backup)
}

// act does what was decided and writes the status.
func (r *Reconciler) act(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) (time.Duration, error) {
	var failed error
	switch plan.Action {
	case planner.ActionRemoveFinalizer:
		return 0, r.release(ctx, key, s)
	case planner.ActionExpire:
		return r.expire(ctx, key, s)
	case planner.ActionSave:
		var made bool
		plan, made, failed = r.save(ctx, key, s, plan)
		if made {
			return 0, nil // the event of the Job brings us back, and the status then says more
		}
	case planner.ActionRecordDue, planner.ActionNone:
		r.releaseReservation(key)
	}
	for _, name := range plan.Delete {
		failed = errors.Join(failed, r.jobs().Delete(ctx, s.jobs, name))
	}
	failed = errors.Join(failed, r.writeStatus(ctx, key, s, plan))
	return plan.RequeueAfter, failed
}

// release takes the ancestor's finalizer off.
func (r *Reconciler) release(ctx context.Context, key types.NamespacedName, s *seen) error {
	update := s.Backup.DeepCopy()
	update.Finalizers = nil
	for _, f := range s.Backup.Finalizers {
		if f != planner.AncestorFinalizer {
			update.Finalizers = append(update.Finalizers, f)
		}
	}
	updated, err := r.Objects.UpdateBackup(ctx, update)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	r.Gate.Note(key, updated)
	return nil
}

// save creates the Job of an attempt if there is a place for it. Made is true if the Job
// exists now.
func (r *Reconciler) save(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) (planner.Plan, bool, error) {
	j, invalid := r.jobOf(s, plan.Attempt)
	if invalid != nil {
		r.queue.End(key)
		return plan.Postponed(*invalid), false, nil
	}
	work := share.Work{Key: key, Cluster: types.NamespacedName{Namespace: key.Namespace, Name: resources.SourceOf(s.Backup)}, Due: plan.Attempt.ScheduledTime}
	running, err := r.running()
	if err != nil {
		return plan, false, err
	}
	if why := r.whyWait(work, r.queue.Start(work, running...)); why != nil {
		plan = plan.Postponed(*why)
		plan.RequeueAfter = placeRetry
		return plan, false, nil
	}
	current, err := r.current(ctx, s)
	if err == nil && current {
		var other *corev1.Pod
		if other, err = r.otherWriter(ctx, s, j); other != nil {
			r.releaseReservation(key)
			plan = plan.Postponed(planner.AwaitWriter(other.Namespace, other.Name, other.Spec.NodeName))
			plan.RequeueAfter = writerRetry
			return plan, false, nil
		}
	}
	if err == nil && current {
		j, err = r.keepHeld(ctx, s, plan.Attempt, j)
	}
	if err != nil || !current {
		r.releaseReservation(key)
		plan.Action, plan.RequeueAfter = planner.ActionNone, reconcile.GateRetry
		return plan, false, err
	}
	made, err := r.create(ctx, s, j)
	if err != nil {
		// Another backup may start until this backup is tried again.
		r.releaseReservation(key)
		err = fmt.Errorf("create Job %s: %w", j.Name, reconcile.MarkRejected(err))
		if errors.Is(err, reconcile.ErrRejected) {
			plan = plan.Postponed(planner.Wait{Reason: planner.ReasonRejected, Message: job.Shorten(err.Error())})
			plan.RequeueAfter, err = rejectedRetry, nil
		}
		return plan, false, err
	}
	r.Gate.Note(key, made)
	return plan, true, nil
}

// jobOf builds the Job of an attempt, or says what is wrong with the spec.
func (r *Reconciler) jobOf(s *seen, a planner.Attempt) (*batchv1.Job, *planner.Wait) {
	j, err := resources.BackupJob(s.Backup, resources.BackupRun{
		ScheduledTime: a.ScheduledTime, Attempt: a.Number, Image: r.AgentImage, Cluster: s.cluster, Members: s.members, Keep: s.Held,
	})
	if err != nil {
		return nil, &planner.Wait{Reason: planner.ReasonInvalidRequest, Message: err.Error()}
	}
	j.Annotations[resources.AnnotationSource] = resources.SourceOf(s.Backup)
	return r.Platform.Job(j), nil
}

// keepHeld returns the Job that deletes nothing of what restores read by the live API: the cache may not show an
// EtcdRestore that was created a moment ago.
func (r *Reconciler) keepHeld(ctx context.Context, s *seen, a planner.Attempt, j *batchv1.Job) (*batchv1.Job, error) {
	if !resources.Prunes(s.Backup) {
		return j, nil
	}
	restores, err := r.Objects.ListRestores(ctx, s.Backup.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list the restores that keep backups: %w", err)
	}
	held, err := r.heldBy(s.Backup, restores, nil)
	if err != nil {
		return nil, err
	}
	s.Held = append(s.Held, held...) // what the cache still shows would end the Job again
	slices.Sort(s.Held)
	s.Held = slices.Compact(s.Held)
	j, invalid := r.jobOf(s, a)
	if invalid != nil {
		return nil, fmt.Errorf("%s: %s", invalid.Reason, invalid.Message) // it was valid a moment ago
	}
	return j, nil
}

// current is true if the live API shows the same status and the same Jobs as were
// decided upon. A cache that lags behind must not make an attempt again whose result
// was written down and whose Job was removed.
func (r *Reconciler) current(ctx context.Context, s *seen) (bool, error) {
	live, err := r.Objects.GetBackup(ctx, s.Backup.Namespace, s.Backup.Name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the backup: %w", err)
	}
	if live.UID != s.Backup.UID || live.ResourceVersion != s.Backup.ResourceVersion {
		return false, nil
	}
	jobs, err := r.Objects.ListJobs(ctx, s.Backup.Namespace, s.Backup.UID)
	if err != nil {
		return false, fmt.Errorf("list Jobs: %w", err)
	}
	known := map[types.UID]bool{}
	for _, j := range s.jobs {
		known[j.UID] = true
	}
	for i := range jobs {
		if metav1.IsControlledBy(&jobs[i], s.Backup) && !known[jobs[i].UID] {
			return false, nil
		}
	}
	return true, nil
}

// otherWriter returns a pod of the live API that may write under the name that a Job stores at; nil if there is none. The
// cache may not show it yet, or it may be a copy that does not say which attempt it is of.
func (r *Reconciler) otherWriter(ctx context.Context, s *seen, j *batchv1.Job) (*corev1.Pod, error) {
	if !resources.SharesKey(&j.Spec.Template.Spec) {
		return nil, nil
	}
	pods, err := r.Objects.ListJobPods(ctx, s.Backup.Namespace, s.Backup.UID)
	if err != nil {
		return nil, fmt.Errorf("list pods of Jobs: %w", err)
	}
	if i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return mayWrite(&p) }); i >= 0 {
		return &pods[i], nil
	}
	return nil, nil
}

// create creates a Job, or finds the one that an earlier process has created.
func (r *Reconciler) create(ctx context.Context, s *seen, j *batchv1.Job) (*batchv1.Job, error) {
	made, err := r.Objects.CreateJob(ctx, j)
	if err == nil {
		r.started(s, made)
		return made, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	live, getErr := r.Objects.GetJob(ctx, j.Namespace, j.Name)
	if getErr != nil {
		return nil, errors.Join(err, getErr)
	}
	if !metav1.IsControlledBy(live, s.Backup) {
		return nil, fmt.Errorf("the Job has another owner: %w", err)
	}
	return live, nil
}

// writeStatus writes the status if it changed.
func (r *Reconciler) writeStatus(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) error {
	write := reconcile.StatusWrite[v1beta2.BackupStatus]{Kind: reconcile.BackupStatus, Gate: r.Gate, Key: key, Object: s.Backup, Current: s.Backup.Status, Now: s.Now}
	written, err := write.Do(ctx,
		func() v1beta2.BackupStatus { return planner.Status(s.Observed, plan) },
		func(status v1beta2.BackupStatus) (metav1.Object, error) {
			update := s.Backup.DeepCopy()
			update.Status = status
			return r.Objects.UpdateBackupStatus(ctx, update)
		})
	if written {
		r.announce(s, plan)
	}
	return err
}
