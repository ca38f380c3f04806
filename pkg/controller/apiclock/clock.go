// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiclock is a clock that follows the kube-apiserver.
//
// The controller compares the present time with times in objects: when a pod was made, when a deletion ends,
// when a loss was seen first. The kube-apiserver and other controllers wrote them. On a machine whose
// clock is a day fast each pod would be too late at once, and each grace over. On a machine whose clock is a
// day slow nothing would ever be overdue. Each response of the kube-apiserver says what time it is there.
package apiclock

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// tolerance is by how much the clocks may differ without a correction. A Date has no fraction, and a
// response takes time.
const tolerance = 10 * time.Second

// Clock is the clock of this machine, corrected by how far it is from the last time that was noted.
type Clock struct {
	local  clock.PassiveClock
	offset atomic.Int64
}

// New returns a clock that is that of this machine until a time is noted.
func New(local clock.PassiveClock) *Clock { return &Clock{local: local} }

// Note takes a time of the kube-apiserver, in whole seconds, for a time between sent and now. The offset
// changes only if no time between them explains what it says: a response that was long on its way, or that
// this program read late, says nothing about the clock.
func (c *Clock) Note(there, sent time.Time) {
	now := c.local.Now().Round(0) // the time of the wall
	least, most := there.Sub(now), there.Add(time.Second).Sub(sent.Round(0))
	if least <= tolerance && most >= -tolerance {
		c.offset.Store(0)
		return
	}
	c.offset.Store(int64(min(max(c.Offset(), least), most)))
}

// Offset is how far this machine is behind.
func (c *Clock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// Now implements clock.PassiveClock. Times of this clock are compared by the wall, and never by the monotonic
// reading that Go keeps beside it: the offset follows the wall. If the clock of this machine is set, the offset
// takes that back, and two times with a monotonic reading would differ by the change for as long as both exist.
func (c *Clock) Now() time.Time { return c.local.Now().Round(0).Add(c.Offset()) }

// IsOver is true if a time since passed at least d ago. A time in the future was noted before the clock
// was set back: how long ago that was is unknown, so it counts as over.
func IsOver(since, now time.Time, d time.Duration) bool {
	age := now.Sub(since)
	return age < 0 || age >= d
}

// Since implements clock.PassiveClock.
func (c *Clock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// Transport notes the time of each response that next returns.
func (c *Clock) Transport(next http.RoundTripper) http.RoundTripper { return noting{c, next} }

type noting struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (n noting) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := n.clock.local.Now()
	response, err := n.next.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // a RoundTripper returns the error of the next one
	}
	if there, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		n.clock.Note(there, sent)
	}
	return response, nil
}

// WrappedRoundTripper lets client-go reach the transport below.
func (n noting) WrappedRoundTripper() http.RoundTripper { return n.next }
