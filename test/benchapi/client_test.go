// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// rejecting is a server that rejects the first requests.
type rejecting struct {
	status     int
	retryAfter string
	// times is the number of rejected requests.
	times    int64
	requests atomic.Int64
}

func (r *rejecting) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.requests.Add(1) <= r.times {
		if r.retryAfter != "" {
			w.Header().Set("Retry-After", r.retryAfter)
		}
		w.WriteHeader(r.status)
		return
	}
	_, _ = io.Copy(w, request.Body)
}

// TestRejectedRequestsAreRepeated: a request is repeated as client-go repeats it, with its whole body.
func TestRejectedRequestsAreRepeated(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		server *rejecting
		want   int64
		fails  bool
	}{
		"accepted":                              {&rejecting{}, 1, false},
		"too many requests for now":             {&rejecting{status: http.StatusTooManyRequests, retryAfter: "0", times: 2}, 3, false},
		"unavailable for now":                   {&rejecting{status: http.StatusServiceUnavailable, retryAfter: "0", times: 1}, 2, false},
		"too many requests until the last time": {&rejecting{status: http.StatusTooManyRequests, retryAfter: "0", times: maxRetries}, maxRetries + 1, false},
		"too many requests permanently":         {&rejecting{status: http.StatusTooManyRequests, retryAfter: "0", times: 100}, maxRetries + 1, true},
		"too many requests without a time":      {&rejecting{status: http.StatusTooManyRequests, times: 1}, 1, true},
		"error without a time":                  {&rejecting{status: http.StatusInternalServerError, times: 1}, 1, true},
		"conflict":                              {&rejecting{status: http.StatusConflict, retryAfter: "0", times: 1}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.server)
			defer server.Close()
			content, err := send(t.Context(), server.Client(), call{method: http.MethodPatch, url: server.URL, body: []byte("whole")})
			if errors.Is(err, errStatus) != test.fails || err == nil && string(content) != "whole" {
				t.Errorf("got %q and %v, want an error: %t", content, err, test.fails)
			}
			if got := test.server.requests.Load(); got != test.want {
				t.Errorf("%d requests, want %d", got, test.want)
			}
		})
	}
}

// TestWaitEnds: a request that waits to be repeated ends with its context.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		cancel()
	}))
	defer server.Close()
	_, err := send(ctx, server.Client(), call{method: http.MethodGet, url: server.URL})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context ended", err)
	}
}
