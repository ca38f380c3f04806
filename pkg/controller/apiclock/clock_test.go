// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclock

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// TestClockFollowsResponses: the clock of a machine that is far off is corrected by the Date of a
// response, and one that is nearly right is left alone.
func TestClockFollowsResponses(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{0, 5 * time.Second, -5 * time.Second, time.Minute, -time.Minute, 24 * time.Hour, -24 * time.Hour} {
		local := testingclock.NewFakePassiveClock(noon.Add(off))
		c := New(local)
		if got := c.Now(); !got.Equal(noon.Add(off)) {
			t.Errorf("%v off, before a response: %v", off, got)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", noon.Format(http.TimeFormat)) }))
		client := http.Client{Transport: c.Transport(http.DefaultTransport)}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		server.Close()
		want := noon
		if off.Abs() < tolerance {
			want = noon.Add(off)
		}
		got := c.Now()
		if got.Sub(want).Abs() > time.Second { // a Date has no fraction
			t.Errorf("%v off: %v, want %v", off, got, want)
		}
		local.SetTime(local.Now().Add(time.Minute))
		if passed := c.Since(got); passed != time.Minute {
			t.Errorf("%v off: a minute later it is %v later", off, passed)
		}
	}
}

// TestReadingsAreOfTheWall: a reading has no monotonic part. When the clock of this machine is set, the offset takes
// that back on the wall, and the monotonic part of a reading would not change.
func TestReadingsAreOfTheWall(t *testing.T) {
	t.Parallel()
	c := New(clock.RealClock{})
	c.Note(time.Now().Add(time.Hour), time.Now())
	if now := c.Now().String(); strings.Contains(now, " m=") {
		t.Errorf("%s has a monotonic part", now)
	}
}

func TestIsOver(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]bool{0: false, 59 * time.Second: false, time.Minute: true, time.Hour: true, -time.Second: true, -time.Hour: true} {
		if got := IsOver(noon, noon.Add(age), time.Minute); got != want {
			t.Errorf("a minute is over after %v: %t, want %t", age, got, want)
		}
	}
}

// TestLateResponse: a response that came late, or that was read late, moves no clock.
func TestLateResponse(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{0, time.Hour, -time.Hour} {
		local := testingclock.NewFakePassiveClock(noon.Add(off))
		c := New(local)
		c.Note(noon, local.Now())
		before, sent := c.Offset(), local.Now()
		local.SetTime(sent.Add(time.Minute))
		for _, there := range []time.Time{noon, noon.Add(30 * time.Second), noon.Add(time.Minute)} {
			if c.Note(there, sent); c.Offset() != before {
				t.Errorf("%v off: the offset was %v and is %v", off, before, c.Offset())
			}
		}
	}
}

// TestResponseWithoutDate: nothing is corrected by a response that tells no time, or by none.
func TestResponseWithoutDate(t *testing.T) {
	t.Parallel()
	c := New(testingclock.NewFakePassiveClock(noon))
	for _, date := range []string{"", "yesterday"} {
		response, err := c.Transport(datedResponse{date}).RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
		if err != nil {
			t.Fatalf("date %q: %v", date, err)
		}
		_ = response.Body.Close()
		if c.Offset() != 0 {
			t.Errorf("date %q: offset %v", date, c.Offset())
		}
	}
}

type datedResponse struct{ date string }

func (d datedResponse) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Date": {d.date}}, Body: http.NoBody}, nil
}
