// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
)

func newLine(terminal bool) (*progress.Line, *testingclock.FakePassiveClock, *strings.Builder) {
	out, clock := &strings.Builder{}, testingclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return progress.NewLine("copy", progress.Options{Out: out, Terminal: terminal, Width: func() int { return 60 }, Clock: clock}), clock, out
}

func TestLine(t *testing.T) {
	half := progress.Step{Text: "moving", Done: 512 << 20, Total: 1 << 30, Bytes: true}
	for name, c := range map[string]struct {
		terminal bool
		after    []time.Duration
		want     string
	}{
		"nothing in the first two seconds": {terminal: true, after: []time.Duration{time.Second}},
		"a terminal gets one line, cut to its width": {
			terminal: true, after: []time.Duration{3 * time.Second, time.Second},
			want: "\r\x1b[Kcopy  [##########----------]  512Mi of 1.0Gi, 50%  00:03  m" +
				"\r\x1b[Kcopy  [##########----------]  512Mi of 1.0Gi, 50%  00:04  m",
		},
		"a log gets a line for a change only": {
			after: []time.Duration{3 * time.Second, time.Second},
			want:  "copy  [##########----------]  512Mi of 1.0Gi, 50%  00:03  moving\n",
		},
		"a log gets the same line again after a while": {
			after: []time.Duration{3 * time.Second, time.Hour},
			want: "copy  [##########----------]  512Mi of 1.0Gi, 50%  00:03  moving\n" +
				"copy  [##########----------]  512Mi of 1.0Gi, 50%  1:00:03  moving\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			line, clock, out := newLine(c.terminal)
			for _, d := range c.after {
				clock.SetTime(clock.Now().Add(d))
				line.Show(half)
			}
			if out.String() != c.want {
				t.Errorf("got %q, want %q", out, c.want)
			}
		})
	}
}

func TestLineEndRemovesTheBar(t *testing.T) {
	line, clock, out := newLine(true)
	clock.SetTime(clock.Now().Add(5 * time.Second))
	line.Show(progress.Step{Text: "x"})
	line.End(out, "done")
	if want := "\r\x1b[Kcopy  00:05  x\r\x1b[Kdone  00:05\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0B", 1023: "1023B", 1024: "1.0Ki", 20 << 20: "20Mi", 3 << 29: "1.5Gi", 8 << 30: "8.0Gi"} {
		if got := progress.Size(bytes); got != want {
			t.Errorf("%d is %s, want %s", bytes, got, want)
		}
	}
}

func TestFollow(t *testing.T) {
	errOther := errors.New("other")
	unavailable := apierrors.NewServiceUnavailable("no endpoints")
	for name, c := range map[string]struct {
		errs    []error
		timeout time.Duration
		want    error
		looks   int
	}{
		"ends when it is done":                    {errs: []error{nil, nil}, looks: 3},
		"an outage of a moment is no end":         {errs: []error{unavailable, unavailable}, looks: 3},
		"another error is an end":                 {errs: []error{errOther}, want: errOther, looks: 1},
		"the time limit has an error of its own":  {errs: make([]error, 1<<16), timeout: 20 * time.Millisecond, want: failure.ErrTimedOut},
		"an outage beyond the limit is a timeout": {errs: many(unavailable), timeout: 20 * time.Millisecond, want: failure.ErrTimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			line, _, _ := newLine(false)
			looks := 0
			err := progress.Follow(t.Context(), line, time.Millisecond, c.timeout, func(context.Context) (progress.Step, bool, error) {
				looks++
				if looks > len(c.errs) {
					return progress.Step{}, true, nil
				}
				return progress.Step{Text: "waits"}, false, c.errs[looks-1]
			})
			if !errors.Is(err, c.want) || (c.looks > 0 && looks != c.looks) {
				t.Errorf("got %v after %d looks, want %v after %d", err, looks, c.want, c.looks)
			}
		})
	}
}

func many(err error) []error {
	list := make([]error, 1<<16)
	for i := range list {
		list[i] = err
	}
	return list
}

func TestFollowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	line, _, _ := newLine(false)
	err := progress.Follow(ctx, line, time.Millisecond, time.Hour, func(context.Context) (progress.Step, bool, error) {
		cancel()
		return progress.Step{}, false, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
