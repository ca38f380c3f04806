// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestApplyHasMoreTime: a change may take longer than a request that is sent again.
func TestApplyHasMoreTime(t *testing.T) {
	const read = 50 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPatch {
			<-r.Context().Done()
			return
		}
		select {
		case <-r.Context().Done():
		case <-time.After(2 * read):
		}
	}))
	defer server.Close()
	c := &Client{server: server.URL, http: server.Client(), read: read, apply: time.Minute}
	if err := c.Apply(t.Context(), "/api", nil); err != nil {
		t.Errorf("a slow change: %v", err)
	}
	if err := c.Ready(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request without a response: %v", err)
	}
}
