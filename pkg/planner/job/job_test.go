// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

var epoch = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestJobs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		job  Job
		late bool
		wait string
	}{
		"it is new":                {Job{Created: epoch.Add(-time.Minute)}, false, ""},
		"it waits":                 {Job{Created: epoch.Add(-time.Minute), Waiting: "Unschedulable"}, false, ReasonNotStarted},
		"it waits for too long":    {Job{Created: epoch.Add(-StartTimeout), Waiting: "Unschedulable"}, true, ReasonNotStarted},
		"it runs for long":         {Job{Created: epoch.Add(-time.Hour), Started: true, Waiting: "x"}, false, ""},
		"it is rejected":           {Job{Created: epoch.Add(-time.Minute), Rejected: true}, false, ReasonRejected},
		"it was rejected for long": {Job{Created: epoch.Add(-time.Hour), PodMade: epoch.Add(-time.Minute)}, false, ""},
		"its pod is late, too":     {Job{Created: epoch.Add(-time.Hour), PodMade: epoch.Add(-StartTimeout)}, true, ""},
		"its next container waits": {Job{Created: epoch.Add(-time.Hour), PodMade: epoch.Add(-time.Hour), StepEnded: epoch.Add(-time.Minute), Waiting: "ErrImagePull"}, false, ReasonNotStarted},
		"its next one is late":     {Job{Created: epoch.Add(-time.Hour), PodMade: epoch.Add(-time.Hour), StepEnded: epoch.Add(-StartTimeout), Waiting: "ErrImagePull"}, true, ReasonNotStarted},
	} {
		wait := ""
		if w := test.job.Unstarted(); w != nil {
			wait = w.Reason
			if w.Message == "" {
				t.Errorf("%s: the wait has no message", name)
			}
		}
		if late := test.job.IsLate(epoch); late != test.late || wait != test.wait {
			t.Errorf("%s: late %t, waits for %q; want %t, %q", name, late, wait, test.late, test.wait)
		}
	}
}

// TestWaitForTheNextContainer: the message says what ends the wait.
func TestWaitForTheNextContainer(t *testing.T) {
	t.Parallel()
	first := Job{Name: "j", Waiting: "ErrImagePull"}
	next := Job{Name: "j", Waiting: "ErrImagePull", StepEnded: epoch}
	for message, want := range map[string]string{
		first.LateMessage():       "the pod of Job j was not started within 10m0s: ErrImagePull",
		next.LateMessage():        "the next container of Job j was not started within 10m0s: ErrImagePull; " + nextImage,
		first.Unstarted().Message: "ErrImagePull",
		next.Unstarted().Message:  "ErrImagePull; " + nextImage,
	} {
		if message != want {
			t.Errorf("%q, want %q", message, want)
		}
	}
}

func TestNoticeable(t *testing.T) {
	t.Parallel()
	at := func(bytes, total int64) *v1beta2.TransferProgress {
		return &v1beta2.TransferProgress{Bytes: bytes, TotalBytes: total}
	}
	for name, test := range map[string]struct {
		before, now *v1beta2.TransferProgress
		want        bool
	}{
		"nothing":         {at(1, 10), nil, false},
		"the first":       {nil, at(0, 10), true},
		"no further":      {at(5, 5), at(5, 5), false},
		"a little":        {at(50, 100), at(59, 100), false},
		"a tenth":         {at(50, 100), at(60, 100), true},
		"unknown total":   {at(50, 0), at(60, 0), true},
		"another attempt": {at(50, 100), at(5, 100), false},
	} {
		if got := IsNoticeable(test.before, test.now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
