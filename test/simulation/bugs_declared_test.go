// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// declarations are faults with declarations that etcd runs with and that do not become true. Each leaves the
// other events of a schedule as they are.
var declarations = map[string]func(*schedules.Schedule){
	"out of reach": func(s *schedules.Schedule) {
		s.Deadly = false // together with permanently lost members, a person must decide
		declare(s, schedules.EventDeaf, 30)
		s.Version, s.Volumes = schedules.VersionLines[0][0], true // without them nothing but such a member has its data
		// A member that an earlier state of the API does not name is repaired only if it does not run.
		s.Events = slices.DeleteFunc(s.Events, func(e schedules.Event) bool { return e.Kind == schedules.EventOldAPI || deadly[e.Kind] })
	},
	"image of a pod":           func(s *schedules.Schedule) { declare(s, schedules.EventSetImage, 31) },
	"walk with certificates":   walkWithCertificates,
	"image of another version": func(s *schedules.Schedule) { declare(s, schedules.EventWrongImage, 32) },
}

// deadly are the events that only schedules have in which data may be lost.
var deadly = map[schedules.EventKind]bool{
	schedules.EventDisaster: true, schedules.EventRecover: true, schedules.EventBackup: true, schedules.EventRestore: true, schedules.EventTotalLoss: true,
}

// declare adds one or two events of a kind, and lets all others happen before the last.
func declare(s *schedules.Schedule, kind schedules.EventKind, dice uint64) {
	d := timeline.NewDice(s.Seed, dice)
	for range 1 + d.IntN(2) {
		e := schedules.Event{At: d.Between(30*time.Second, 4*time.Minute), Kind: kind, A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.Between(10*time.Second, 4*time.Minute)}
		s.Events = append(s.Events, e, schedules.Event{At: e.At + e.For + time.Second, Kind: schedules.EventResume})
	}
	slices.SortStableFunc(s.Events, func(a, b schedules.Event) int { return int(a.At - b.At) })
}

// alone leaves a schedule nothing but the events of one kind.
func alone(size int, volumes bool, e schedules.Event) func(*schedules.Schedule) {
	return func(s *schedules.Schedule) {
		e.At, e.A = time.Minute, s.Events[0].A
		s.Size, s.Volumes, s.Version, s.PodsChanged, s.Skew = size, volumes, schedules.VersionLines[0][0], false, 0
		s.Events = []schedules.Event{e, {At: e.At + e.For + time.Second, Kind: schedules.EventResume}}
	}
}

// TestDeclarations plays schedules with each of these faults.
func TestDeclarations(t *testing.T) {
	n := min(*scheduleCount, 25)
	for name, story := range declarations {
		t.Run(name, func(t *testing.T) {
			variant := Variant{Name: name, story: story}
			total, failed := playAll(n, *firstSeed, variant, nil)
			t.Logf("%v\n%d violations", total, len(failed))
			for _, r := range failed[:min(len(failed), 3)] {
				report(t, r, variant)
			}
		})
	}
}

// TestDeclarationsThatFailed plays those again in which something was found once.
func TestDeclarationsThatFailed(t *testing.T) {
	for _, found := range []struct {
		story string
		seed  uint64
		what  string
	}{
		{"out of reach", 7008, "the leader did not respond, and without it no other voter could be removed"},
		{"out of reach", 7012, "the bootstrap member had never responded"},
		{"out of reach", 33000003, "the leader did not respond, and a third voter was lost with its PVC"},
		{"image of another version", 51800009, "an API was brought back from before the declaration was corrected"},
	} {
		variant := Variant{Name: found.story, story: declarations[found.story]}
		if r := Run(variant.schedule(found.seed), variant, timeline.NewStats(), false); r.Violation != nil {
			t.Errorf("%s, seed %d, in which %s: %v", found.story, found.seed, found.what, r.Violation)
		}
	}
}

// bugsOfDeclarations are mistakes with members that run and are not what is declared.
func bugsOfDeclarations() []bug {
	return []bug{
		{name: "changes only the image for another version", rules: "L1 S2", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return onlyImages{c.Objects} }), story: walkWithCertificates},
		{name: "leaves a member alone that runs and does not respond", rules: "L1", wrap: deciding(leaveUnresponsive), story: alone(1, true, schedules.Event{Kind: schedules.EventDeaf, For: 3 * time.Minute})},
		{name: "believes the tag of an image", rules: "L1", wrap: deciding(believeTag), story: alone(3, false, schedules.Event{Kind: schedules.EventWrongImage, For: 3 * time.Minute})},
		{name: "does not look at the image of a pod", rules: "L1", wrap: deciding(ignoreImage), story: alone(3, false, schedules.Event{Kind: schedules.EventSetImage, B: 1, For: 3 * time.Minute})},
	}
}

// leaveUnresponsive restarts no member without a member list.
func leaveUnresponsive(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Etcd.Unasked = true
	return decide(o)
}

// believeTag takes a member whose image holds another version for one that restarts.
func believeTag(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	return decide(withPods(o, func(p *planner.Pod) { p.Started = time.Time{} }))
}

// ignoreImage takes every image for the requested one.
func ignoreImage(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	return decide(withPods(o, func(p *planner.Pod) { p.Image = resources.ImageAdmitted }))
}

// withPods is an observation with changed pods.
func withPods(o planner.Observed, change func(*planner.Pod)) planner.Observed {
	o.Pods = slices.Clone(o.Pods)
	for i := range o.Pods {
		change(&o.Pods[i])
	}
	return o
}

// walkWithCertificates declares one minor version after the other.
func walkWithCertificates(s *schedules.Schedule) {
	alone(3, s.Seed%2 == 0, schedules.Event{Kind: schedules.EventVersion})(s)
	s.Certificates, s.Snapshots = true, 1000
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventVersion, A: 3},
		{At: 10 * time.Minute, Kind: schedules.EventVersion, A: 4},
		{At: 11 * time.Minute, Kind: schedules.EventResume},
	}
}

// onlyImages changes no annotation that has the value of a variable of etcd.
type onlyImages struct{ cluster.Objects }

// UpdatePod implements cluster.Objects.
func (o onlyImages) UpdatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	live, err := o.GetPod(ctx, pod.Namespace, pod.Name)
	if err != nil {
		return nil, err
	}
	pod = pod.DeepCopy()
	for name := range pod.Annotations {
		if value, found := live.Annotations[name]; found && strings.HasSuffix(name, "peer-skip-client-san-verification") {
			pod.Annotations[name] = value
		}
	}
	return o.Objects.UpdatePod(ctx, pod)
}
