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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/controller/agentjob"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// gateFallback is how long a key waits for its cache if no event comes.
	gateFallback = time.Second
	// placeFallback is how long one waits for a place if nobody is seen to leave.
	placeFallback = 15 * time.Second
	// refusedFallback is when a Job that Kubernetes did not let be made is tried again.
	refusedFallback = 5 * time.Second
	// startGrace is how long a Job holds its place although its pod has not started.
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
	// MaxRunning is how many Jobs may run at once, over all clusters.
	MaxRunning int
	// Responsible says whether an EtcdBackup, or the cluster that it is of, is this
	// controller's to look after.
	Responsible func(metav1.Object) bool
	// Wake puts a key back on the queue.
	Wake func(types.NamespacedName)
}

// Reconciler moves one EtcdBackup at a time a step on.
type Reconciler struct {
	Config
	admission *admission
}

// NewReconciler returns a Reconciler, or an error that names what is missing.
func NewReconciler(c Config) (*Reconciler, error) {
	if c.Cache == nil || c.Objects == nil || c.Gate == nil || c.Recorder == nil || c.Progress == nil || c.Clock == nil ||
		c.AgentImage == "" || c.MaxRunning < 1 || c.Responsible == nil || c.Wake == nil {
		return nil, errors.New("backup reconciler: every field of the configuration is required")
	}
	return &Reconciler{Config: c, admission: newAdmission(c.MaxRunning)}, nil
}

// Reconcile observes the EtcdBackup called key, does what the planner decides and
// writes the status if it changed. It returns when to be called again if nothing
// happens before. An error is something that went wrong and is tried again with
// back-off; waiting is not an error.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	b, err := r.Cache.Backup(key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		r.Gate.Forget(key)
		r.leave(key)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read backup from the cache: %w", err)
	}
	if !r.Gate.Ready(key) {
		return gateFallback, nil
	}
	r.admission.settle(key)
	s, err := r.observe(ctx, b)
	if err != nil {
		return 0, err
	}
	if !r.responsible(s) {
		return 0, nil
	}
	plan := planner.Decide(s.Observed)
	klog.FromContext(ctx).V(4).Info("Decided", "action", plan.Action, "attempt", plan.Attempt, "wait", plan.Wait)
	return r.act(ctx, key, s, plan)
}

// responsible goes by the cluster, so that a backup has the same controller; by the
// backup itself if it is of no cluster that is known.
func (r *Reconciler) responsible(s *seen) bool {
	if s.cluster != nil {
		return r.Responsible(s.cluster)
	}
	return r.Responsible(s.Backup)
}

// act does what was decided and writes the status.
func (r *Reconciler) act(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) (time.Duration, error) {
	var failed error
	switch plan.Action {
	case planner.ActionRelease:
		return 0, r.release(ctx, key, s)
	case planner.ActionSave:
		var made bool
		plan, made, failed = r.save(ctx, key, s, plan)
		if made {
			return 0, nil // the event of the Job brings us back, and the status then says more
		}
	case planner.ActionNone:
		r.leave(key)
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

// save makes the Job of an attempt if there is a place for it. Made is true if there is
// such a Job now.
func (r *Reconciler) save(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) (planner.Plan, bool, error) {
	job, invalid := r.jobOf(s, plan.Attempt)
	if invalid != nil {
		r.admission.leave(key)
		return plan.Postponed(*invalid), false, nil
	}
	source := types.NamespacedName{Namespace: key.Namespace, Name: resources.SourceOf(s.Backup)}
	job.Annotations[resources.AnnotationSource] = source.Name
	running, err := r.running()
	if err != nil {
		return plan, false, err
	}
	at := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	if why := r.admission.admit(key, at, source, plan.Attempt.Slot, running); why != nil {
		plan = plan.Postponed(*why)
		plan.RequeueAfter = placeFallback
		return plan, false, nil
	}
	current, err := r.current(ctx, s)
	if err != nil || !current {
		r.leave(key)
		plan.Action, plan.RequeueAfter = planner.ActionNone, gateFallback
		return plan, false, err
	}
	made, err := r.create(ctx, s, job)
	if err != nil {
		// The place goes to another one until this is tried again.
		r.leave(key)
		err = fmt.Errorf("make Job %s: %w", job.Name, agentjob.Refused(err))
		if errors.Is(err, agentjob.ErrRefused) {
			plan = plan.Postponed(planner.Wait{Reason: planner.ReasonRefused, Message: agentjob.Shorten(err.Error())})
			plan.RequeueAfter, err = refusedFallback, nil
		}
		return plan, false, err
	}
	r.Gate.Note(key, made)
	return plan, true, nil
}

// jobOf builds the Job of an attempt, or says what is wrong with the spec.
func (r *Reconciler) jobOf(s *seen, a planner.Attempt) (*batchv1.Job, *planner.Wait) {
	job, err := resources.BackupJob(s.Backup, resources.BackupRun{
		Slot: a.Slot, Attempt: a.Number, Image: r.AgentImage, Cluster: s.cluster, Members: s.members,
	})
	if err != nil {
		return nil, &planner.Wait{Reason: "InvalidRequest", Message: err.Error()}
	}
	return r.Platform.Job(job), nil
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
	for _, job := range s.jobs {
		known[job.UID] = true
	}
	for i := range jobs {
		if metav1.IsControlledBy(&jobs[i], s.Backup) && !known[jobs[i].UID] {
			return false, nil
		}
	}
	return true, nil
}

// create makes a Job, or finds that an earlier life has made it.
func (r *Reconciler) create(ctx context.Context, s *seen, job *batchv1.Job) (*batchv1.Job, error) {
	made, err := r.Objects.CreateJob(ctx, job)
	if err == nil {
		r.started(s, made)
		return made, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	live, getErr := r.Objects.GetJob(ctx, job.Namespace, job.Name)
	if getErr != nil {
		return nil, errors.Join(err, getErr)
	}
	if !metav1.IsControlledBy(live, s.Backup) {
		return nil, fmt.Errorf("it belongs to somebody else: %w", err)
	}
	return live, nil
}

// running lists the Jobs that have not ended. One whose pod Kubernetes does not start
// gives its place to others: it may wait for a claim that nobody makes.
func (r *Reconciler) running() ([]transfer, error) {
	jobs, err := r.Cache.AllJobs()
	if err != nil {
		return nil, fmt.Errorf("list Jobs from the cache: %w", err)
	}
	pods, err := r.Cache.AllJobPods()
	if err != nil {
		return nil, fmt.Errorf("list pods of Jobs from the cache: %w", err)
	}
	made := map[types.UID][]*corev1.Pod{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			made[owner.UID] = append(made[owner.UID], pod)
		}
	}
	var running []transfer
	for _, job := range jobs {
		young := r.Clock.Since(job.CreationTimestamp.Time) < startGrace
		moving := slices.ContainsFunc(made[job.UID], func(pod *corev1.Pod) bool { return agentjob.Started(job, pod) })
		if agentjob.Ended(job) == nil && job.DeletionTimestamp == nil && (young || moving) {
			running = append(running, transfer{
				job:    types.NamespacedName{Namespace: job.Namespace, Name: job.Name},
				source: types.NamespacedName{Namespace: job.Namespace, Name: job.Annotations[resources.AnnotationSource]},
			})
		}
	}
	return running, nil
}

// leave gives up the place of a backup and wakes who fits in now.
func (r *Reconciler) leave(key types.NamespacedName) {
	r.admission.leave(key)
	r.wakeFitting()
}

func (r *Reconciler) wakeFitting() {
	running, err := r.running()
	if err != nil {
		return // they look again by themselves
	}
	for _, key := range r.admission.fitting(running) {
		r.Wake(key)
	}
}

// writeStatus writes the status if it changed; at most one write.
func (r *Reconciler) writeStatus(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) error {
	if s.Backup.DeletionTimestamp != nil {
		return nil
	}
	status := planner.Status(s.Observed, plan)
	if equality.Semantic.DeepEqual(status, s.Backup.Status) {
		return nil
	}
	update := s.Backup.DeepCopy()
	update.Status = status
	updated, err := r.Objects.UpdateBackupStatus(ctx, update)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // somebody changed the object: its event brings us back
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.Gate.Note(key, updated)
	r.announce(s, plan)
	return nil
}
