// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// Every pod that a NetworkPolicy admits reaches the endpoint, without a credential. So each connection ends, and
// metrics are written for few clients at once: a scrape holds the metrics of all clusters in memory.
const (
	readTimeout     = 5 * time.Second
	writeTimeout    = time.Minute
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 5 * time.Second
	maxHeaderBytes  = 16 << 10
	maxScrapes      = 4
)

// endpoint serves /healthz and /readyz, and /metrics if nothing else does.
type endpoint struct {
	listener net.Listener
	server   *http.Server
	ready    atomic.Bool
}

// newEndpoint listens. Metrics may be nil.
func newEndpoint(ctx context.Context, address string, metrics http.Handler) (*endpoint, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics and probes on %s (--listen-addr): %w", address, err)
	}
	e := &endpoint{listener: listener}
	mux := http.NewServeMux()
	if metrics != nil {
		mux.Handle("/metrics", metrics)
	}
	alive := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	mux.HandleFunc("/healthz", alive)
	// A process that waits for the lease is ready once its caches are filled: it is there to
	// take over.
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if !e.ready.Load() {
			http.Error(w, "the caches are not filled yet: the kube-apiserver or the API server of etcd-operator does not respond", http.StatusServiceUnavailable)
			return
		}
		alive(w, r)
	})
	e.server = &http.Server{
		Handler: mux, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	return e, nil
}

// limited serves a number of requests at once, and rejects the others.
func limited(number int, next http.Handler) http.Handler {
	places := make(chan struct{}, number)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "5")
			http.Error(w, fmt.Sprintf("%d requests for metrics are being served, and no more are at once; send the request again", number), http.StatusServiceUnavailable)
		}
	})
}

// serve returns when ctx has ended and open requests are done.
func (e *endpoint) serve(ctx context.Context) {
	logger := klog.FromContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := e.server.Shutdown(stop); err != nil {
			logger.Error(err, "Closing the endpoint for metrics and probes")
		}
	}()
	if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
		logger.Error(err, "The endpoint for metrics and probes ended")
	}
	<-done
}
