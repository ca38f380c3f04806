// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

var (
	retentionWalks = flag.Uint64("retention-walks", 24, "how many lives of ten years TestRetentionKeepsWhatTheRulesKeep plays")
	retentionSeed  = flag.Uint64("retention-seed", 0, "the seed of the first of them")
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// retentionWalk is ten years of one periodic EtcdBackup, with what plans its Jobs and what runs in their pods. Only the
// stream from etcd is left out. Clocks are wrong, stores fail, users restore, hold and change their minds.
type retentionWalk struct {
	t    *testing.T
	ctx  context.Context
	seed uint64
	dice *rand.Rand
	log  []string

	now          time.Time // what is true
	ahead        clocks    // what clocks show beyond it
	jumped       bool      // a clock has been wrong by a year
	every        time.Duration
	volume, calm bool
	shelf        *shelf

	backup   *v1beta2.EtcdBackup
	cluster  *v1beta2.EtcdCluster
	singles  []*v1beta2.EtcdBackup
	restores []*walkRestore
	jobs     []backup.Job
	requests map[string]*agent.Request // by Job
	zombies  []*agent.Request          // of pods on lost nodes, which may come back
	revision int64
	number   int
	asked    int // EtcdRestores

	rules // what must be true
}

// clocks are how far the clocks are ahead: that of Kubernetes and the controller, and that of the node.
type clocks struct{ kubernetes, node time.Duration }

func newRetentionWalk(t *testing.T, seed uint64) *retentionWalk {
	w := &retentionWalk{
		t: t, ctx: klog.NewContext(t.Context(), klog.Logger{}), seed: seed, dice: rand.New(rand.NewPCG(seed, 11)),
		now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), requests: map[string]*agent.Request{}, revision: 1, volume: seed%2 == 1,
	}
	w.every = time.Duration(3+w.dice.IntN(12)) * day
	w.shelf = &shelf{objects: map[string]*onShelf{}, deleting: w.deleting, now: func() time.Time {
		if w.volume {
			return w.now.Add(w.ahead.node)
		}
		return w.now
	}}
	w.cluster = &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u0", CreationTimestamp: metav1.NewTime(w.now)}}
	w.backup = w.newBackup("nightly", &v1beta2.BackupPolicy{BackupIntervalInSecond: int64(w.every / time.Second)})
	w.known = map[string]*madeBackup{}
	w.notOwned = map[string]bool{}
	for i, key := range []string{
		"etcd/nightly/v1/ns/c-u0/20200101T000000Z-00000000000000000001-copy/snapshot.db.of-a-user",
		"etcd/nightly/v1/ns/c-u0/readme.txt", "etcd/nightly/v1/ns/c-x-u0/20200101T000000Z-00000000000000000001-1/snapshot.db",
		"etcd/other/v1/ns/c-u0/20200101T000000Z-00000000000000000001-1/snapshot.db",
	} {
		w.notOwned[key] = true
		w.shelf.objects[key] = &onShelf{content: []byte{byte(i)}}
		w.shelf.objects[key].Key, w.shelf.objects[key].Size, w.shelf.objects[key].Modified = key, 1, w.now.Add(-9*year)
	}
	return w
}

func (w *retentionWalk) newBackup(name string, policy *v1beta2.BackupPolicy) *v1beta2.EtcdBackup {
	return &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(w.kubernetes()), Generation: 1},
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: "c"}, StorageType: v1beta2.BackupStorageTypeS3, BackupPolicy: policy,
			BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/etcd"}},
		},
	}
}

// kubernetes is what the clock of the controller shows.
func (w *retentionWalk) kubernetes() time.Time {
	return w.now.Add(w.ahead.kubernetes).Truncate(time.Second)
}

func (w *retentionWalk) chance(of int) bool { return !w.calm && w.dice.IntN(of) == 0 }

func (w *retentionWalk) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format(time.DateTime)+" "+fmt.Sprintf(format, args...))
}

func (w *retentionWalk) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log[max(len(w.log)-60, 0):] {
		w.t.Log(line)
	}
	w.t.Fatalf("seed %d: %s: %s", w.seed, w.now.Format(time.DateTime), fmt.Sprintf(format, args...))
}

// observe is what the controller sees.
func (w *retentionWalk) observe() backup.Observed {
	o := backup.Observed{Now: w.kubernetes(), Backup: w.backup, Jobs: w.jobs}
	if r := w.cluster.Status.Recovery; r != nil && r.Phase == v1beta2.RecoveryPhaseSucceeded {
		o.Recovered = r.CompletionTime.Time
	}
	o.Held = backup.Held(w.backup, append(w.singles, w.backup), w.openRestores(), []*v1beta2.EtcdCluster{w.cluster}, o.Now)
	return o
}

// reconcile lets the controller go on until it waits for the time, or for a Job that takes longer.
func (w *retentionWalk) reconcile() {
	for range 40 {
		w.advanceRestores()
		o := w.observe()
		plan := backup.Decide(o)
		if plan.Action == backup.ActionSave {
			w.begin(plan.Attempt, o.Held)
			continue
		}
		w.backup.Status = backup.Status(o, plan)
		w.backup.Status.ObservedGeneration = w.backup.Generation
		w.jobs = slices.DeleteFunc(w.jobs, func(j backup.Job) bool { return slices.Contains(plan.Delete, j.Name) })
		switch running := slices.IndexFunc(w.jobs, func(j backup.Job) bool { return j.Outcome == nil && j.LostNode == nil }); {
		case plan.Record != nil || plan.Action != backup.ActionNone:
		case running >= 0 && w.chance(4):
			return // it takes until something else has happened
		case running >= 0:
			w.end(&w.jobs[running])
		case w.backup.Status.Phase == v1beta2.BackupPhaseFailed && w.backup.Status.Attempts < 12:
			w.now = w.now.Add(plan.RequeueAfter)
			if w.dice.IntN(3) == 0 {
				w.shelf.fault = faultNone
			}
		default:
			return
		}
	}
}

// begin creates a Job.
func (w *retentionWalk) begin(a backup.Attempt, held []string) {
	made, err := resources.BackupJob(w.backup, resources.BackupRun{ScheduledTime: a.ScheduledTime, Attempt: a.Number, Image: "agent", Cluster: w.cluster, Members: []resources.MemberAddress{{Name: "m", IP: "10.0.0.1"}}, Keep: held})
	if err != nil {
		w.t.Fatal(err)
	}
	request, err := agent.RequestIn(made.Spec.Template.Spec.Containers[0].Args)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.volume {
		request.Store.VolumeDir = agent.VolumeDir
	}
	w.requests[made.Name] = request
	j := backup.Job{Job: job.Job{Name: made.Name, Created: w.kubernetes(), Started: true}, Attempt: a}
	if request.Prune != nil {
		j.Pruner = &job.Pruner{Job: made.Name, Request: request}
	}
	w.jobs = append(w.jobs, j)
}

// end lets the pod of a Job do its work, or loses its node.
func (w *retentionWalk) end(j *backup.Job) {
	request := w.requests[j.Name]
	if w.chance(60) {
		w.note("the node of %s is lost", j.Name)
		j.LostNode = &job.LostNode{Since: w.kubernetes(), Message: "lost"}
		w.zombies = append(w.zombies, request)
		return
	}
	result := w.runAgent(request)
	o := &backup.Outcome{Start: j.Created, Completion: w.now.Add(w.ahead.node).Truncate(time.Second)}
	if result.Error != nil {
		o.Reason, o.Message = string(result.Error.Class), result.Error.Message
	} else {
		o.Succeeded, o.URI, o.Revision, o.Verified, o.Unconfirmed, o.Warning = true, result.URI, result.Revision, result.Verified, result.Unconfirmed, result.Warning
	}
	// As in the controller, an attempt ends neither before it began nor after now.
	if o.Completion.After(w.kubernetes()) {
		o.Completion = w.kubernetes()
	}
	if o.Completion.Before(o.Start) {
		o.Completion = o.Start
	}
	j.Outcome = o
}

// TestRetentionKeepsWhatTheRulesKeep is deterministic: a seed that fails can be tried alone, with -retention-seed and
// -retention-walks=1.
func TestRetentionKeepsWhatTheRulesKeep(t *testing.T) {
	first, last := *retentionSeed, *retentionSeed+*retentionWalks-1
	switch {
	case raceEnabled:
		last = first + min(*retentionWalks, 4) - 1
	case testing.Short():
		last = first + min(*retentionWalks, 10) - 1
	}
	total := rules{}
	for seed := first; seed <= last; seed++ {
		w := newRetentionWalk(t, seed)
		for end := w.now.Add(10 * year); w.now.Before(end); {
			w.now = w.now.Add(w.every/4 + time.Duration(w.dice.Int64N(int64(w.every))))
			w.disturb()
			w.reconcile()
			w.expireSingles()
		}
		w.settle()
		total.add(&w.rules)
	}
	t.Logf("seeds %d to %d, ten years each: %d backups, %d pruned, %d of them of an earlier cluster, %d restores, %d failed attempts, %d single EtcdBackups expired",
		first, last, total.made, total.pruned, total.prunedEarlier, total.restored, total.failed, total.expired)
	if last-first >= 9 && (total.pruned < total.made/3 || total.restored == 0 || total.expired == 0 || total.prunedEarlier == 0 || total.failed == 0) {
		t.Error("hardly anything happened: nothing was tested")
	}
}

// runAgent does what the pod does. The snapshot comes from nowhere; the rest is the agent's.
func (w *retentionWalk) runAgent(request *agent.Request) *agent.Result {
	w.number++
	request.Etcd = &agent.Etcd{} // no member exists
	result := &agent.Result{Command: agent.CommandSave, ID: request.ID}
	t := &run{Runner: w.runner(), request: request, result: result, store: w.shelf}
	w.running, w.mustKeep = t, nil
	defer func() {
		w.running = nil
		if w.broken != "" {
			w.fail("%s; retention %+v", w.broken, request.Prune)
		}
	}()
	done, err := t.findDone(w.ctx, manifest.Place{Layout: request.Save.Layout, Key: request.Store.Key, Owner: request.Save.Owner})
	if done == nil && err == nil {
		done, err = w.store(t)
	}
	if err != nil {
		w.failed++
		w.note("attempt of %s fails: %v", request.Save.Started.Format(time.DateTime), err)
		result.Error = &agent.Error{Class: agent.ClassStore, Message: err.Error()}
		return result
	}
	w.concluding(done)
	t.conclude(w.ctx, done)
	w.note("backup %s, revision %d, unconfirmed %t, Kubernetes %s, node %s, fault %q: pruned %d, warning %q",
		done.Key, done.Manifest.Revision, done.Manifest.Unconfirmed, w.ahead.kubernetes, w.ahead.node, w.shelf.fault, result.Pruned, result.Warning)
	if result.Warning == "" && w.chance(80) {
		result.Error = &agent.Error{Class: agent.ClassInternal, Message: "the pod was ended after that"}
	}
	return result
}
