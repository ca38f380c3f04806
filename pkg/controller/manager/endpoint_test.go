// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// TestScrapesAreLimited: clients without a credential read the metrics, and few of them at once. Probes have no such limit.
func TestScrapesAreLimited(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	handler := limited(2, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-end
		w.WriteHeader(http.StatusOK)
	}))
	serve := func() *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		return recorder
	}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if got := serve(); got.Code != http.StatusOK {
				t.Errorf("got %d", got.Code)
			}
		})
		<-begun
	}
	if got := serve(); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
		t.Errorf("the third request: %d %s", got.Code, got.Body)
	}
	close(end)
	group.Wait()
	group.Go(func() { <-begun })
	if got := serve(); got.Code != http.StatusOK {
		t.Errorf("a request after the others: %d", got.Code)
	}
	group.Wait()
}

// TestEndpointEndsConnections: no client holds a connection or fills memory for ever.
func TestEndpointEndsConnections(t *testing.T) {
	t.Parallel()
	e, err := newEndpoint(t.Context(), "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.listener.Close()
	if s := e.server; s.ReadTimeout == 0 || s.WriteTimeout == 0 || s.IdleTimeout == 0 || s.MaxHeaderBytes == 0 {
		t.Errorf("the server has no limits: %+v", s)
	}
}
