// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/controller/restore"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// errCrash ends a life of the controller in the middle of a reconcile.
var errCrash = errors.New("the controller was killed")

const namespace = "ns"

// objects is one state of the API.
type objects struct {
	restores map[string]*v1beta2.EtcdRestore
	clusters map[string]*v1beta2.EtcdCluster
	backups  map[string]*v1beta2.EtcdBackup
	jobs     map[string]*batchv1.Job
	pods     map[string]*corev1.Pod
	// pruners are the Jobs of EtcdBackups.
	pruners map[string]*batchv1.Job
	rv      int
}

func (o *objects) clone() objects {
	return objects{maps.Clone(o.restores), maps.Clone(o.clusters), maps.Clone(o.backups), maps.Clone(o.jobs), maps.Clone(o.pods), maps.Clone(o.pruners), o.rv}
}

// world is an API server whose caches lag behind, a Kubernetes that runs Jobs, agents,
// and a controller of clusters.
type world struct {
	*testing.T
	live, cached objects
	clock        *clocktesting.FakePassiveClock
	reconciler   *restore.Reconciler

	// calls counts the calls of the API; the one with the number crashAt is the last
	// of this life, before or after it took effect.
	calls, crashAt int
	after          bool
	// fails is why the agent finds the backup not good; empty if it is.
	fails agent.ErrorClass
	// full is true while a quota rejects everything; podless while it rejects only pods.
	full, podless bool
	// asked counts the requests for a recovery, made the EtcdClusters that were created.
	asked, made int
	// touched is true once old members were decommissioned.
	touched bool
	events  []string
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, clock: clocktesting.NewFakePassiveClock(epoch.Add(time.Minute))}
	w.live = objects{
		map[string]*v1beta2.EtcdRestore{}, map[string]*v1beta2.EtcdCluster{}, map[string]*v1beta2.EtcdBackup{},
		map[string]*batchv1.Job{}, map[string]*corev1.Pod{}, map[string]*batchv1.Job{}, 0,
	}
	w.restart()
	return w
}

// sync makes the caches show the live objects. Stored objects are never changed in place.
func (w *world) sync() { w.cached = w.live.clone() }

// restart begins a new life of the controller.
func (w *world) restart() {
	w.Helper()
	if w.cached.restores == nil {
		w.sync()
	}
	seen := func() string { return strconv.Itoa(w.cached.rv) }
	var err error
	w.reconciler, err = restore.NewReconciler(restore.Config{
		Cache: w, Objects: w, Recorder: w, Progress: w, Clock: w.clock, AgentImage: "agent:v1",
		Gate: reconcile.NewGate(map[string]func() string{
			reconcile.KindOf(&v1beta2.EtcdRestore{}): seen, reconcile.KindOf(&batchv1.Job{}): seen, reconcile.KindOf(&v1beta2.EtcdCluster{}): seen,
			reconcile.KindOf(&v1beta2.EtcdBackup{}): seen,
		}),
		Responsible: func(metav1.Object) bool { return true },
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) version(object metav1.Object) {
	w.live.rv++
	object.SetResourceVersion(strconv.Itoa(w.live.rv))
}

// addCluster makes a cluster that serves.
func (w *world) addCluster() {
	c := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: namespace, UID: "uid-c"},
		Spec:       v1beta2.ClusterSpec{Version: "3.6.16", Replicas: ptr.To[int32](3)},
		Status: v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning, MemberStatuses: []v1beta2.MemberStatus{
			{Name: "c-a", Healthy: corev1.ConditionTrue},
		}},
	}
	w.version(c)
	w.live.clusters[c.Name] = c
}

func (w *world) addRestore(edit func(*v1beta2.EtcdRestore)) {
	r := &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: namespace, UID: "uid-r", CreationTimestamp: metav1.NewTime(epoch)},
		Spec: v1beta2.RestoreSpec{
			EtcdCluster: v1beta2.EtcdClusterRef{Name: "c"}, BackupStorageType: v1beta2.BackupStorageTypeS3,
			RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/key", AWSSecret: "aws"}},
		},
	}
	if edit != nil {
		edit(r)
	}
	w.version(r)
	w.live.restores[r.Name] = r
}

// delete is a user who deletes the restore.
func (w *world) delete() {
	r, found := w.live.restores["r"]
	switch {
	case !found || r.DeletionTimestamp != nil:
	case len(r.Finalizers) == 0:
		delete(w.live.restores, "r")
		w.live.rv++
	default:
		r = r.DeepCopy()
		r.DeletionTimestamp = ptr.To(metav1.NewTime(w.clock.Now()))
		w.version(r)
		w.live.restores["r"] = r
	}
}

// reconcile reconciles the restore. The error is errCrash if the life ended in it.
func (w *world) reconcile() (after time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			if cause, ok := r.(error); !ok || !errors.Is(cause, errCrash) {
				panic(r)
			}
			err = errCrash
		}
	}()
	return w.reconciler.Reconcile(w.Context(), types.NamespacedName{Namespace: namespace, Name: "r"})
}

// agents lets the Jobs that run end.
func (w *world) agents() {
	for _, job := range w.live.jobs {
		if len(job.Status.Conditions) > 0 || w.podless {
			continue
		}
		result := agent.Result{Command: agent.CommandVerify, ID: "i", Started: epoch, Finished: w.clock.Now()}
		condition := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
		exit, phase := int32(0), corev1.PodSucceeded
		if w.fails == "" {
			result.Key, result.SHA256, result.Revision, result.Size, result.EtcdVersion, result.Verified = "key/nightly/snapshot.db", "abc", 42, 1000, "3.6.16", true
		} else {
			result.Error = &agent.Error{Class: w.fails, Message: "it is not good"}
			condition.Type, exit, phase = batchv1.JobFailed, 1, corev1.PodFailed
		}
		raw, err := result.Encode()
		if err != nil {
			w.Fatal(err)
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: job.Name + "-x", Namespace: namespace, Labels: job.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
			},
			Spec: job.Spec.Template.Spec,
			Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
				Name: resources.ContainerVerify,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					ExitCode: exit, Message: string(raw), FinishedAt: metav1.NewTime(w.clock.Now()),
				}},
			}}},
		}
		w.version(pod)
		w.live.pods[pod.Name] = pod
		ended := job.DeepCopy()
		ended.Status.Conditions = []batchv1.JobCondition{condition}
		w.version(ended)
		w.live.jobs[ended.Name] = ended
	}
}

// copies lets the EtcdBackups that were made succeed.
func (w *world) copies() {
	for name, b := range w.live.backups {
		if b.Status.Succeeded {
			continue
		}
		b = b.DeepCopy()
		b.Status = v1beta2.BackupStatus{
			Succeeded: true, Phase: v1beta2.BackupPhaseSucceeded, EtcdRevision: 99, URI: "s3://bucket/" + name, LastSuccessDate: metav1.NewTime(w.clock.Now()),
		}
		w.version(b)
		w.live.backups[name] = b
	}
}

// clusters lets the controller of clusters do one step of a recovery.
func (w *world) clusters() {
	c, found := w.live.clusters["c"]
	if !found || !c.Status.Recovery.IsInProgress() {
		return
	}
	c = c.DeepCopy()
	r := c.Status.Recovery
	switch r.Phase {
	case v1beta2.RecoveryPhasePending, v1beta2.RecoveryPhaseFilling:
		switch {
		case r.Cancelled:
			r.Phase, r.Message = v1beta2.RecoveryPhaseAbandoned, "it was cancelled"
		case r.Phase == v1beta2.RecoveryPhasePending:
			r.Phase, r.RecoveryMember = v1beta2.RecoveryPhaseFilling, "c-recovery"
		default:
			r.Phase, w.touched = v1beta2.RecoveryPhaseCutover, true
		}
	case v1beta2.RecoveryPhaseCutover:
		r.Phase = v1beta2.RecoveryPhaseCleaning
		c.Status.Phase = v1beta2.ClusterPhaseRunning
		if len(c.Status.Restores) > 0 {
			c.Status.Restores[0].Time = ptr.To(metav1.NewTime(w.clock.Now()))
		}
	default:
		r.Phase = v1beta2.RecoveryPhaseSucceeded
	}
	w.version(c)
	w.live.clusters["c"] = c
}

// call is one call of the API.
func call[T any](w *world, effect func() (T, error)) (T, error) {
	w.calls++
	if w.calls == w.crashAt && !w.after {
		panic(errCrash)
	}
	result, err := effect()
	if w.calls == w.crashAt {
		panic(errCrash)
	}
	return result, err
}

func get[T any](from map[string]T, resource, name string) (T, error) {
	object, ok := from[name]
	if !ok {
		return object, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
	}
	return object, nil
}

func conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{}, name, errors.New("it was changed"))
}

func (w *world) Restore(_, name string) (*v1beta2.EtcdRestore, error) {
	return get(w.cached.restores, "etcdrestores", name)
}

func (w *world) Restores(string) ([]*v1beta2.EtcdRestore, error) {
	return slices.Collect(maps.Values(w.cached.restores)), nil
}

func (w *world) Backup(_, name string) (*v1beta2.EtcdBackup, error) {
	return get(w.cached.backups, "etcdbackups", name)
}

func (w *world) Cluster(_, name string) (*v1beta2.EtcdCluster, error) {
	return get(w.cached.clusters, "etcdclusters", name)
}

func (w *world) Member(_, name string) (*corev1.Pod, error) { return get(w.cached.pods, "pods", name) }

func (w *world) Jobs(string, types.UID) ([]*batchv1.Job, error) {
	return slices.Collect(maps.Values(w.cached.jobs)), nil
}

func (w *world) JobPods(string, types.UID) ([]*corev1.Pod, error) { return jobPods(&w.cached), nil }

func (w *world) BackupJobs(string) ([]*batchv1.Job, error) {
	return slices.Collect(maps.Values(w.cached.pruners)), nil
}

func (w *world) BackupJobPods(string) ([]*corev1.Pod, error) { return prunerPods(&w.cached), nil }

func (w *world) ListBackupJobs(context.Context, string) ([]*batchv1.Job, error) {
	return call(w, func() ([]*batchv1.Job, error) { return slices.Collect(maps.Values(w.live.pruners)), nil })
}

func (w *world) ListBackupJobPods(context.Context, string) ([]*corev1.Pod, error) {
	return call(w, func() ([]*corev1.Pod, error) { return prunerPods(&w.live), nil })
}

func prunerPods(o *objects) []*corev1.Pod {
	return slices.DeleteFunc(slices.Collect(maps.Values(o.pods)), func(p *corev1.Pod) bool { return p.Labels[resources.LabelApp] != resources.BackupAppName })
}

func jobPods(o *objects) []*corev1.Pod {
	var list []*corev1.Pod
	for _, p := range o.pods {
		if p.Labels[resources.LabelApp] == resources.RestoreAppName {
			list = append(list, p)
		}
	}
	return list
}

func (w *world) GetRestore(_ context.Context, _, name string) (*v1beta2.EtcdRestore, error) {
	return call(w, func() (*v1beta2.EtcdRestore, error) { return get(w.live.restores, "etcdrestores", name) })
}

func (w *world) putRestore(r *v1beta2.EtcdRestore, edit func(stored *v1beta2.EtcdRestore)) (*v1beta2.EtcdRestore, error) {
	old, err := get(w.live.restores, "etcdrestores", r.Name)
	if err != nil {
		return nil, err
	}
	if old.ResourceVersion != r.ResourceVersion {
		return nil, conflict(r.Name)
	}
	stored := old.DeepCopy()
	edit(stored)
	w.version(stored)
	w.live.restores[r.Name] = stored
	if stored.DeletionTimestamp != nil && len(stored.Finalizers) == 0 {
		delete(w.live.restores, r.Name)
	}
	return stored, nil
}

func (w *world) UpdateRestore(_ context.Context, r *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return call(w, func() (*v1beta2.EtcdRestore, error) {
		return w.putRestore(r, func(stored *v1beta2.EtcdRestore) { stored.Finalizers = r.Finalizers })
	})
}

func (w *world) UpdateRestoreStatus(_ context.Context, r *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return call(w, func() (*v1beta2.EtcdRestore, error) {
		if c := w.live.clusters["c"]; r.Status.Succeeded && (c == nil || c.Status.Recovery == nil || c.Status.Recovery.Phase != v1beta2.RecoveryPhaseSucceeded) {
			w.Errorf("the status says that it has succeeded, the cluster says %+v", c)
		}
		return w.putRestore(r, func(stored *v1beta2.EtcdRestore) { stored.Status = *r.Status.DeepCopy() })
	})
}

func (w *world) GetCluster(_ context.Context, _, name string) (*v1beta2.EtcdCluster, error) {
	return call(w, func() (*v1beta2.EtcdCluster, error) { return get(w.live.clusters, "etcdclusters", name) })
}

func (w *world) CreateCluster(_ context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return call(w, func() (*v1beta2.EtcdCluster, error) {
		if _, taken := w.live.clusters[c.Name]; taken {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "etcdclusters"}, c.Name)
		}
		if w.full {
			return nil, quota("etcdclusters", c.Name)
		}
		w.made++
		stored := c.DeepCopy()
		stored.UID = types.UID(fmt.Sprintf("uid-c-%d", w.made))
		w.version(stored)
		w.live.clusters[c.Name] = stored
		return stored, nil
	})
}

func (w *world) UpdateClusterStatus(_ context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return call(w, func() (*v1beta2.EtcdCluster, error) {
		old, err := get(w.live.clusters, "etcdclusters", c.Name)
		if err != nil {
			return nil, err
		}
		if old.ResourceVersion != c.ResourceVersion {
			return nil, conflict(c.Name)
		}
		if r := c.Status.Recovery; r != nil && r.Phase == v1beta2.RecoveryPhasePending && !r.Cancelled {
			w.asked++
			if w.live.restores["r"] == nil || len(w.live.restores["r"].Finalizers) == 0 {
				w.Error("the restore that requests the recovery has no finalizer")
			}
			if c.Status.Phase == v1beta2.ClusterPhaseRunning {
				w.safe()
			}
			if w.fails != "" || r.Source.Backup.SHA256 != "abc" {
				w.Errorf("the request names the source %+v", r.Source)
			}
		}
		stored := old.DeepCopy()
		stored.Status = *c.Status.DeepCopy()
		w.version(stored)
		w.live.clusters[c.Name] = stored
		return stored, nil
	})
}

// safe checks that the data of the cluster was stored before the request to replace it.
func (w *world) safe() {
	w.Helper()
	copied := w.live.restores["r"].Status.PreRestoreBackup
	if copied == nil {
		w.Error("the cluster gets a request without a pre-restore backup")
		return
	}
	b := w.live.backups[copied.Backup]
	if b == nil || !b.Status.Succeeded || b.Spec.EtcdCluster.Name != "c" || b.Annotations[resources.AnnotationPreRestoreBackup] != "r" || copied.Revision != 99 || copied.URI != b.Status.URI {
		w.Errorf("the status names the pre-restore backup %+v, there is %+v", copied, b)
	}
}

func (w *world) CreateBackup(_ context.Context, b *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return call(w, func() (*v1beta2.EtcdBackup, error) {
		if _, taken := w.live.backups[b.Name]; taken {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "etcdbackups"}, b.Name)
		}
		if w.full {
			return nil, quota("etcdbackups", b.Name)
		}
		stored := b.DeepCopy()
		w.version(stored)
		w.live.backups[b.Name] = stored
		return stored, nil
	})
}

func (w *world) DeleteCluster(_ context.Context, _, name string, only metav1.Preconditions) error {
	_, err := call(w, func() (struct{}, error) {
		old, err := get(w.live.clusters, "etcdclusters", name)
		if err != nil {
			return struct{}{}, err
		}
		if *only.UID != old.UID || *only.ResourceVersion != old.ResourceVersion {
			return struct{}{}, conflict(name)
		}
		if old.Annotations[v1beta2.AnnotationRestore] != "r" || old.Status.Phase == v1beta2.ClusterPhaseRunning {
			w.Errorf("cluster %s is deleted", name)
		}
		if old.Spec.DeletionProtection != nil && *old.Spec.DeletionProtection {
			return struct{}{}, apierrors.NewForbidden(schema.GroupResource{Resource: "etcdclusters"}, name, errors.New("spec.deletionProtection is true"))
		}
		delete(w.live.clusters, name)
		w.live.rv++
		return struct{}{}, nil
	})
	return err
}

func (w *world) GetJob(_ context.Context, _, name string) (*batchv1.Job, error) {
	return call(w, func() (*batchv1.Job, error) { return get(w.live.jobs, "jobs", name) })
}

func (w *world) ListJobs(context.Context, string, types.UID) ([]batchv1.Job, error) {
	return call(w, func() ([]batchv1.Job, error) {
		var list []batchv1.Job
		for _, j := range w.live.jobs {
			list = append(list, *j)
		}
		return list, nil
	})
}

func (w *world) ListJobPods(context.Context, string, types.UID) ([]corev1.Pod, error) {
	return call(w, func() ([]corev1.Pod, error) {
		var list []corev1.Pod
		for _, p := range jobPods(&w.live) {
			list = append(list, *p)
		}
		return list, nil
	})
}

func quota(resource, name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, name, errors.New("exceeded quota: full"))
}

func (w *world) ListJobEvents(_ context.Context, _ string, job types.UID) ([]corev1.Event, error) {
	return call(w, func() ([]corev1.Event, error) {
		if !w.podless {
			return nil, nil
		}
		return []corev1.Event{{
			InvolvedObject: corev1.ObjectReference{UID: job}, Reason: "FailedCreate", Message: "Error creating: " + quota("pods", "x").Error(),
		}}, nil
	})
}

func (w *world) CreateJob(_ context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	return call(w, func() (*batchv1.Job, error) {
		if _, taken := w.live.jobs[job.Name]; taken {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "jobs"}, job.Name)
		}
		if w.full {
			return nil, quota("jobs", job.Name)
		}
		if image := job.Spec.Template.Spec.Containers[0].Image; image != "agent:v1" {
			w.Errorf("Job %s runs %q", job.Name, image)
		}
		made := job.DeepCopy()
		made.CreationTimestamp = metav1.NewTime(w.clock.Now())
		w.version(made)
		made.UID = types.UID("job-" + made.ResourceVersion)
		w.live.jobs[made.Name] = made
		return made, nil
	})
}

func (w *world) DeleteJob(_ context.Context, _, name string, only metav1.Preconditions) error {
	_, err := call(w, func() (struct{}, error) {
		job, err := get(w.live.jobs, "jobs", name)
		if err != nil {
			return struct{}{}, err
		}
		if *only.UID != job.UID {
			return struct{}{}, conflict(name)
		}
		delete(w.live.jobs, name)
		delete(w.live.pods, name+"-x")
		w.live.rv++
		return struct{}{}, nil
	})
	return err
}

// Of implements restore.Progress.
func (w *world) Of(context.Context, string) (*v1beta2.TransferProgress, error) {
	return nil, errors.New("no agent responds here")
}

// Eventf implements restore.Recorder.
func (w *world) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	w.events = append(w.events, reason+" "+fmt.Sprintf(format, args...))
}
