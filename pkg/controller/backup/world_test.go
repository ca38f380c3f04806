// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	"github.com/etcd-operator/etcd-operator/pkg/controller/backup"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// errCrash ends a life of the controller in the middle of a reconcile.
var errCrash = errors.New("the controller was killed")

// errQuota is the error with which Kubernetes rejects a creation.
var errQuota = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("exceeded quota: full"))

// objects is one state of the API.
type objects struct {
	backups  map[types.NamespacedName]*v1beta2.EtcdBackup
	clusters map[types.NamespacedName]*v1beta2.EtcdCluster
	jobs     map[types.NamespacedName]*batchv1.Job
	pods     map[types.NamespacedName]*corev1.Pod
	rv       int
}

// world is an API server whose caches lag behind, a Kubernetes that runs Jobs, agents
// and a store.
type world struct {
	*testing.T
	live, cached objects
	clock        *clocktesting.FakePassiveClock
	reconciler   *backup.Reconciler
	clusters     *backup.Clusters

	// calls counts the calls of the API; the one with the number crashAt is the last
	// of this life, before or after it took effect.
	calls, crashAt int
	// restores are those of the live API, cachedRestores those of the cache. restoresErr is why they cannot be listed.
	restores, cachedRestores []*v1beta2.EtcdRestore
	restoresErr              error
	maxRunning               int
	// elsewhere is the name of an object that another controller looks after.
	elsewhere string
	after     bool
	// woken are the keys that asked to be looked at.
	woken map[types.NamespacedName]bool
	// stored counts what agents have made visible in the store, by transfer; runs
	// counts their successful runs.
	stored map[string]int
	runs   int
	events []string
	// fullOfBackups is true while a quota rejects every EtcdBackup.
	fullOfBackups bool
	// cutOff is true while no node reports the end of a pod.
	cutOff bool
	// full is true while a quota rejects every Job, podless while it rejects every pod.
	full, podless bool
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, clock: clocktesting.NewFakePassiveClock(epoch.Add(time.Second)), stored: map[string]int{}, maxRunning: 3}
	w.live = objects{
		backups: map[types.NamespacedName]*v1beta2.EtcdBackup{}, clusters: map[types.NamespacedName]*v1beta2.EtcdCluster{},
		jobs: map[types.NamespacedName]*batchv1.Job{}, pods: map[types.NamespacedName]*corev1.Pod{},
	}
	w.restart()
	return w
}

func clone[T any](from map[types.NamespacedName]T) map[types.NamespacedName]T {
	to := make(map[types.NamespacedName]T, len(from))
	for k, v := range from {
		to[k] = v
	}
	return to
}

// sync makes the caches show the live objects. Stored objects are never changed in place.
func (w *world) sync() {
	w.cached = objects{clone(w.live.backups), clone(w.live.clusters), clone(w.live.jobs), clone(w.live.pods), w.live.rv}
}

// restart begins a new life of the controller. Its caches may be older than the last
// one's were.
func (w *world) restart() {
	w.Helper()
	w.woken = map[types.NamespacedName]bool{}
	if w.cached.backups == nil {
		w.sync()
	}
	seen := func() string { return strconv.Itoa(w.cached.rv) }
	gate := func() *reconcile.CacheGate {
		return reconcile.NewGate(map[string]func() string{
			reconcile.KindOf(&v1beta2.EtcdBackup{}): seen, reconcile.KindOf(&batchv1.Job{}): seen, reconcile.KindOf(&v1beta2.EtcdCluster{}): seen,
		})
	}
	var err error
	w.reconciler, err = backup.NewReconciler(backup.Config{
		Cache: w, Objects: w, Gate: gate(), Recorder: w, Progress: w, Clock: w.clock, AgentImage: "agent:v1", Places: share.Places{Total: w.maxRunning, Undivided: true},
		Responsible: func(o metav1.Object) bool { return o.GetName() != w.elsewhere },
		Wake:        func(key types.NamespacedName) { w.woken[key] = true },
	})
	if err != nil {
		w.Fatal(err)
	}
	w.clusters = backup.NewClusters(w.reconciler, gate())
}

func key(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func (w *world) version(object metav1.Object) {
	w.live.rv++
	object.SetResourceVersion(strconv.Itoa(w.live.rv))
}

// addCluster makes a cluster with members that run.
func (w *world) addCluster(name string, members int) *v1beta2.EtcdCluster {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch),
	}, Spec: v1beta2.ClusterSpec{Version: "3.6.16"}}
	w.version(c)
	w.live.clusters[key(c)] = c
	for i := range members {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", name, i), Namespace: "ns", Labels: resources.Labels(name),
			OwnerReferences: []metav1.OwnerReference{resources.Owner(c)},
		}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.0.%d", i+1)}}
		w.version(p)
		w.live.pods[key(p)] = p
	}
	return c
}

func (w *world) addBackup(name, cluster string, policy *v1beta2.BackupPolicy) *v1beta2.EtcdBackup {
	b := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(w.clock.Now().Truncate(time.Second))},
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: cluster}, StorageType: v1beta2.BackupStorageTypeS3, BackupPolicy: policy,
			BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/key", AWSSecret: "aws"}},
		},
	}
	w.version(b)
	w.live.backups[key(b)] = b
	return b
}

// reconcile reconciles one EtcdBackup. The error is errCrash if the life ended in it.
func (w *world) reconcile(b types.NamespacedName) (after time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			if cause, ok := r.(error); !ok || !errors.Is(cause, errCrash) {
				panic(r)
			}
			err = errCrash
		}
	}()
	return w.reconciler.Reconcile(w.Context(), b)
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

func missing(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

func get[T any](from map[types.NamespacedName]T, resource, namespace, name string) (T, error) {
	object, ok := from[types.NamespacedName{Namespace: namespace, Name: name}]
	if !ok {
		return object, missing(resource, name)
	}
	return object, nil
}

func (w *world) Backup(namespace, name string) (*v1beta2.EtcdBackup, error) {
	return get(w.cached.backups, "etcdbackups", namespace, name)
}

func (w *world) Backups(namespace string) ([]*v1beta2.EtcdBackup, error) {
	var list []*v1beta2.EtcdBackup
	for k, b := range w.cached.backups {
		if k.Namespace == namespace {
			list = append(list, b)
		}
	}
	return list, nil
}

func (w *world) Restores(string) ([]*v1beta2.EtcdRestore, error) { return w.cachedRestores, nil }

func (w *world) Clusters(string) ([]*v1beta2.EtcdCluster, error) {
	return slices.Collect(maps.Values(w.cached.clusters)), nil
}

func (w *world) ListRestores(context.Context, string) ([]*v1beta2.EtcdRestore, error) {
	return w.restores, w.restoresErr
}

func (w *world) ListBackups(context.Context, string) ([]*v1beta2.EtcdBackup, error) {
	return call(w, func() ([]*v1beta2.EtcdBackup, error) { return slices.Collect(maps.Values(w.live.backups)), nil })
}

func (w *world) DeleteBackup(_ context.Context, namespace, name string, only metav1.Preconditions) error {
	_, err := call(w, func() (struct{}, error) {
		b, err := get(w.live.backups, "etcdbackups", namespace, name)
		if err != nil {
			return struct{}{}, err
		}
		if *only.UID != b.UID || *only.ResourceVersion != b.ResourceVersion {
			return struct{}{}, apierrors.NewConflict(schema.GroupResource{Resource: "etcdbackups"}, name, nil)
		}
		delete(w.live.backups, key(b))
		w.live.rv++
		return struct{}{}, nil
	})
	return err
}

func (w *world) Cluster(namespace, name string) (*v1beta2.EtcdCluster, error) {
	return get(w.cached.clusters, "etcdclusters", namespace, name)
}

func (w *world) Members(namespace, name string) ([]*corev1.Pod, error) {
	var list []*corev1.Pod
	for k, p := range w.cached.pods {
		if k.Namespace == namespace && p.Labels[resources.LabelCluster] == name {
			list = append(list, p)
		}
	}
	return list, nil
}

func (w *world) Jobs(_ string, uid types.UID) ([]*batchv1.Job, error) {
	return jobsOf(&w.cached, uid), nil
}

func jobsOf(o *objects, uid types.UID) []*batchv1.Job {
	var list []*batchv1.Job
	for _, j := range o.jobs {
		if j.Labels[resources.LabelBackupUID] == string(uid) {
			list = append(list, j)
		}
	}
	return list
}

func (w *world) AllJobs() ([]*batchv1.Job, error) {
	var list []*batchv1.Job
	for _, j := range w.cached.jobs {
		list = append(list, j)
	}
	return list, nil
}

func (w *world) JobPods(_ string, uid types.UID) ([]*corev1.Pod, error) {
	return podsOf(&w.cached, uid), nil
}

func (w *world) AllJobPods() ([]*corev1.Pod, error) {
	var list []*corev1.Pod
	for _, p := range w.cached.pods {
		if p.Labels[resources.LabelApp] == resources.BackupAppName {
			list = append(list, p)
		}
	}
	return list, nil
}

func podsOf(o *objects, uid types.UID) []*corev1.Pod {
	var list []*corev1.Pod
	for _, p := range o.pods {
		if p.Labels[resources.LabelBackupUID] == string(uid) {
			list = append(list, p)
		}
	}
	return list
}

func (w *world) GetBackup(_ context.Context, namespace, name string) (*v1beta2.EtcdBackup, error) {
	return call(w, func() (*v1beta2.EtcdBackup, error) { return get(w.live.backups, "etcdbackups", namespace, name) })
}

func (w *world) GetCluster(_ context.Context, namespace, name string) (*v1beta2.EtcdCluster, error) {
	return call(w, func() (*v1beta2.EtcdCluster, error) { return get(w.live.clusters, "etcdclusters", namespace, name) })
}

func (w *world) CreateBackup(_ context.Context, b *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return call(w, func() (*v1beta2.EtcdBackup, error) {
		if w.fullOfBackups {
			return nil, errQuota
		}
		if _, taken := w.live.backups[key(b)]; taken {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "etcdbackups"}, b.Name)
		}
		made := b.DeepCopy()
		made.UID, made.Generation, made.CreationTimestamp = types.UID("uid-"+b.Name), 1, metav1.NewTime(w.clock.Now())
		v1beta2.SetObjectDefaults_EtcdBackup(made)
		w.version(made)
		w.live.backups[key(made)] = made
		return made, nil
	})
}

func (w *world) putBackup(b *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	old, err := get(w.live.backups, "etcdbackups", b.Namespace, b.Name)
	if err != nil {
		return nil, err
	}
	if old.ResourceVersion != b.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "etcdbackups"}, b.Name, nil)
	}
	stored := b.DeepCopy()
	w.version(stored)
	w.live.backups[key(stored)] = stored
	return stored, nil
}

func (w *world) UpdateBackup(_ context.Context, b *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return call(w, func() (*v1beta2.EtcdBackup, error) { return w.putBackup(b) })
}

func (w *world) UpdateBackupStatus(_ context.Context, b *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return call(w, func() (*v1beta2.EtcdBackup, error) { return w.putBackup(b) })
}

func (w *world) UpdateClusterStatus(_ context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return call(w, func() (*v1beta2.EtcdCluster, error) {
		if w.live.clusters[key(c)].ResourceVersion != c.ResourceVersion {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "etcdclusters"}, c.Name, nil)
		}
		stored := c.DeepCopy()
		w.version(stored)
		w.live.clusters[key(stored)] = stored
		return stored, nil
	})
}

func (w *world) GetJob(_ context.Context, namespace, name string) (*batchv1.Job, error) {
	return call(w, func() (*batchv1.Job, error) { return get(w.live.jobs, "jobs", namespace, name) })
}

func (w *world) ListJobs(_ context.Context, _ string, uid types.UID) ([]batchv1.Job, error) {
	return call(w, func() ([]batchv1.Job, error) {
		var list []batchv1.Job
		for _, j := range jobsOf(&w.live, uid) {
			list = append(list, *j)
		}
		return list, nil
	})
}

func (w *world) CreateJob(_ context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	return call(w, func() (*batchv1.Job, error) {
		if _, taken := w.live.jobs[key(job)]; taken {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "jobs"}, job.Name)
		}
		if w.full {
			return nil, errQuota
		}
		made := job.DeepCopy()
		made.CreationTimestamp = metav1.NewTime(w.clock.Now())
		w.version(made)
		made.UID = types.UID("job-" + made.ResourceVersion)
		w.live.jobs[key(made)] = made
		return made, nil
	})
}

func (w *world) DeleteJob(_ context.Context, namespace, name string, only metav1.Preconditions) error {
	_, err := call(w, func() (struct{}, error) {
		job, err := get(w.live.jobs, "jobs", namespace, name)
		if err != nil {
			return struct{}{}, err
		}
		if *only.UID != job.UID {
			return struct{}{}, apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, name, nil)
		}
		delete(w.live.jobs, key(job))
		for k, p := range w.live.pods {
			switch {
			case !metav1.IsControlledBy(p, job):
			case w.cutOff:
				p = p.DeepCopy()
				p.DeletionTimestamp = ptr.To(metav1.NewTime(w.clock.Now().Add(time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second)))
				w.live.pods[k] = p
			default:
				delete(w.live.pods, k)
			}
		}
		w.live.rv++
		return struct{}{}, nil
	})
	return err
}

func (w *world) ListJobEvents(_ context.Context, _ string, job types.UID) ([]corev1.Event, error) {
	if !w.podless {
		return nil, nil
	}
	return []corev1.Event{{
		InvolvedObject: corev1.ObjectReference{UID: job}, Reason: "FailedCreate", Message: "Error creating: " + errQuota.Error(),
	}}, nil
}

func (w *world) ListJobPods(_ context.Context, _ string, uid types.UID) ([]corev1.Pod, error) {
	return call(w, func() ([]corev1.Pod, error) {
		var list []corev1.Pod
		for _, p := range podsOf(&w.live, uid) {
			list = append(list, *p)
		}
		return list, nil
	})
}

// Of implements backup.Progress.
func (w *world) Of(context.Context, string) (*v1beta2.TransferProgress, error) {
	return nil, errors.New("no agent responds here")
}

// Eventf implements backup.Recorder.
func (w *world) Eventf(object runtime.Object, _, reason, format string, args ...any) {
	name := ""
	if meta, ok := object.(metav1.Object); ok {
		name = meta.GetName()
	}
	w.events = append(w.events, name+" "+reason+" "+fmt.Sprintf(format, args...))
}

// request is the request that the agent in a Job received.
func (w *world) request(job *batchv1.Job) *agent.Request {
	for _, arg := range job.Spec.Template.Spec.Containers[0].Args {
		if raw, found := strings.CutPrefix(arg, "--"+agent.RequestFlag+"="); found {
			r, err := agent.DecodeRequest(agent.CommandSave, []byte(raw))
			if err != nil {
				w.Fatal(err)
			}
			return r
		}
	}
	w.Fatalf("Job %s has no request", job.Name)
	return nil
}

// podOf returns the pod of a Job, with its agent in a state.
func (w *world) podOf(job *batchv1.Job, phase corev1.PodPhase, state corev1.ContainerState) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + "-x", Namespace: job.Namespace, Labels: job.Spec.Template.Labels, Annotations: job.Spec.Template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: job.Spec.Template.Spec,
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
			Name: resources.ContainerSave, State: state,
		}}},
	}
	w.version(pod)
	w.live.pods[key(pod)] = pod
	return pod
}

// run lets the agent of a Job end. Without a class it has stored a backup.
func (w *world) run(job *batchv1.Job, class agent.ErrorClass) {
	r := w.request(job)
	result := agent.Result{Command: agent.CommandSave, ID: r.ID, Started: job.CreationTimestamp.Time, Finished: w.clock.Now()}
	condition := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
	exit, phase := int32(0), corev1.PodSucceeded
	if class == "" {
		w.stored[r.ID]++
		w.runs++
		result.URI, result.Revision, result.Size, result.Verified = "s3://bucket/"+r.ID, int64(w.runs), 100, true
	} else {
		result.Error = &agent.Error{Class: class, Message: "it did not work"}
		condition.Type, exit, phase = batchv1.JobFailed, 1, corev1.PodFailed
	}
	raw, err := result.Encode()
	if err != nil {
		w.Fatal(err)
	}
	w.podOf(job, phase, corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, Message: string(raw), FinishedAt: metav1.NewTime(w.clock.Now())},
	})
	ended := job.DeepCopy()
	ended.Status.Conditions = []batchv1.JobCondition{condition}
	w.version(ended)
	w.live.jobs[key(ended)] = ended
}

// open are the Jobs whose agents have not ended.
func (w *world) open() []*batchv1.Job {
	var list []*batchv1.Job
	for _, j := range w.live.jobs {
		if len(j.Status.Conditions) == 0 {
			list = append(list, j)
		}
	}
	return list
}

func (w *world) backup(name string) *v1beta2.EtcdBackup {
	return w.live.backups[types.NamespacedName{Namespace: "ns", Name: name}]
}
