// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestNewestEventOfAJobTellsWhyItsPodIsRejected(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-0a1b", UID: "u"}}
	event := func(seconds int, uid, reason, message string) corev1.Event {
		return corev1.Event{
			InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}, Reason: reason, Message: message,
			LastTimestamp: metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second)),
		}
	}
	quota := func(pod string) string {
		return fmt.Sprintf(`Error creating: pods %q is forbidden: exceeded quota: full`, pod)
	}
	series := event(0, "u", EventRejected, quota("nightly-0a1b-zzzzz"))
	series.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(epoch.Add(time.Hour))}
	want := `Error creating: pods "nightly-0a1b" is forbidden: exceeded quota: full`
	for name, test := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"nothing":    {nil, ""},
		"one":        {[]corev1.Event{event(1, "u", EventRejected, quota("nightly-0a1b-x7k2p"))}, want},
		"the newest": {[]corev1.Event{event(2, "u", EventRejected, quota("nightly-0a1b-aaaaa")), event(1, "u", EventRejected, "older")}, want},
		"a series":   {[]corev1.Event{event(2, "u", EventRejected, "older"), series}, want},
		"made later": {[]corev1.Event{event(1, "u", EventRejected, "older"), {
			ObjectMeta:     metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(epoch.Add(time.Hour))},
			InvolvedObject: corev1.ObjectReference{UID: "u"}, Reason: EventRejected, Message: quota("nightly-0a1b-x7k2p"),
		}}, want},
		"another Job's": {[]corev1.Event{event(1, "other", EventRejected, "x")}, ""},
		"other news":    {[]corev1.Event{event(1, "u", "SuccessfulCreate", "Created pod: x")}, ""},
	} {
		if got := rejectionIn(job, test.events); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestOnlyAnOldJobWithoutAPodMayBeRejected(t *testing.T) {
	t.Parallel()
	job := func(edit func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(epoch)}}
		edit(j)
		return j
	}
	plain := func(*batchv1.Job) {}
	for name, test := range map[string]struct {
		edit func(*batchv1.Job)
		pods []*corev1.Pod
		age  time.Duration
		want bool
	}{
		"just made": {plain, nil, podGrace - time.Second, false},
		"no pod":    {plain, nil, podGrace, true},
		"a pod":     {plain, []*corev1.Pod{{}}, time.Minute, false},
		"going":     {func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }, nil, time.Minute, false},
		"ended": {func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}, nil, time.Minute, false},
	} {
		if got := mayBeRejected(job(test.edit), test.pods, epoch.Add(test.age)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
