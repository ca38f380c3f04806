// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// requestRate is the number of requests in a second.
	requestRate = 100
	// requestsInFlight bounds the requests at the same time. Above it, requests wait, and the wait
	// counts.
	requestsInFlight = 200
	// deleteAfter is the number of requests after which a made object is deleted.
	deleteAfter = requestRate
)

// Kinds of requests.
const (
	kindGet    = "get"
	kindStatus = "merge patch of the status"
	kindSpec   = "merge patch of the spec"
	kindCreate = "create"
	kindDelete = "delete"
)

// kindOf returns the kind of a request. Of 50 requests 40 read and 10 change an object.
func kindOf(i int) string {
	switch i % 50 {
	case 0, 12, 25, 37:
		return kindStatus
	case 6, 18, 31, 43:
		return kindSpec
	case 9:
		return kindCreate
	case 34:
		return kindDelete
	default:
		return kindGet
	}
}

// latencies collects the latencies of each kind.
type latencies struct {
	mu     sync.Mutex
	byKind map[string][]time.Duration
}

func (l *latencies) add(kind string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byKind[kind] = append(l.byKind[kind], took)
}

// traffic sends requests through the kube-apiserver while watches at the API server read all
// events. Then it checks what each watch has read.
func (r *scaleRun) traffic(ctx context.Context) error {
	from, err := r.version(ctx)
	if err != nil {
		return err
	}
	truth := r.watchStorage(ctx, from)
	say("opening %d watches", r.settings.watchers)
	watches, err := r.openWatches(ctx, from)
	if err != nil {
		return err
	}
	defer watches.close()
	if err := r.resetPeak(); err != nil {
		return err
	}
	w, err := r.openWindow(ctx)
	if err != nil {
		return err
	}
	watches.start()
	repeated := retries.Load()
	say("sending %d requests a second for %s", requestRate, r.settings.duration)
	var took *latencies
	group, sending := errgroup.WithContext(ctx)
	group.Go(func() error { return r.profileRequests(sending) })
	group.Go(func() (err error) {
		took, err = r.send(sending)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	measured, err := w.close(nil)
	if err != nil {
		return err
	}
	if r.found.TrafficPeak, err = r.peakBytes(); err != nil {
		return err
	}
	r.found.Retries = retries.Load() - repeated
	r.found.TrafficSeconds, r.found.TrafficCPU, r.found.Client = measured.Seconds, measured.CPU, measured.Client
	for _, kind := range slices.Sorted(maps.Keys(took.byKind)) {
		all := took.byKind[kind]
		r.found.Requests = append(r.found.Requests, scaleRequests{
			Kind: kind, Number: len(all),
			P50: milliseconds(quantile(all, 0.5)), P99: milliseconds(quantile(all, 0.99)), Max: milliseconds(quantile(all, 1)),
		})
	}
	return r.check(ctx, truth, watches)
}

// profileRequests takes a CPU profile of the API server while requests are sent, if that is desired.
func (r *scaleRun) profileRequests(ctx context.Context) error {
	if r.profiles == "" {
		return nil
	}
	seconds := max(1, int(r.settings.duration.Seconds())-1)
	profile, err := send(ctx, r.direct.clients.admin, call{method: http.MethodGet, url: fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", r.direct.base, seconds)})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.profiles, "scale-requests.pprof"), profile, 0o600)
}

// check waits until every watch has read the last change, and compares what each has read with
// what etcd reports.
func (r *scaleRun) check(ctx context.Context, truth *storageWatch, watches *watchSet) error {
	last, err := r.lastChange(ctx)
	if err != nil {
		return err
	}
	say("waiting until every watch has read version %d", last)
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	want, err := truth.until(ctx, last)
	if err != nil {
		return err
	}
	r.found.Events = len(want)
	all, reopened := watches.until(ctx, last)
	r.found.Reopened = reopened
	for _, read := range all {
		missed, repeated := compareEvents(want, read)
		r.found.Missed += missed
		r.found.Repeated += repeated
		r.found.EventsRead += len(read)
	}
	return nil
}

// version returns the resource version of the EtcdClusters.
func (r *scaleRun) version(ctx context.Context) (uint64, error) {
	content, err := send(ctx, r.direct.clients.admin, call{method: http.MethodGet, url: r.direct.resourcePath() + "?limit=1", accept: accepts[formatJSON]})
	if err != nil {
		return 0, err
	}
	return versionIn(content)
}

// lastChange makes one more change and returns its version.
func (r *scaleRun) lastChange(ctx context.Context) (uint64, error) {
	content, err := send(ctx, r.direct.clients.admin, call{
		method: http.MethodPatch, url: r.direct.url(scaleNamespace(0), "/"+scaleName(0)), contentType: mergePatch,
		accept: accepts[formatJSON], body: []byte(`{"metadata":{"annotations":{"example.com/last":"change"}}}`),
	})
	if err != nil {
		return 0, err
	}
	return versionIn(content)
}

func versionIn(content []byte) (uint64, error) {
	var head struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(content, &head); err != nil {
		return 0, err
	}
	return strconv.ParseUint(head.Metadata.ResourceVersion, 10, 64)
}

// send sends requests at a constant rate. Each has a time at which it should start, and its latency
// counts from this time: a slow server cannot make the rate lower without being seen.
func (r *scaleRun) send(ctx context.Context) (*latencies, error) {
	if err := r.newUser(ctx, r.aggregated); err != nil {
		return nil, err
	}
	took := &latencies{byKind: map[string][]time.Duration{}}
	number := int(r.settings.duration.Seconds() * requestRate)
	made := make([]chan struct{}, number)
	for i := range made {
		made[i] = make(chan struct{})
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(requestsInFlight)
	begun := time.Now()
	for i := range number {
		due := begun.Add(time.Duration(i) * time.Second / requestRate)
		if err := pause(ctx, time.Until(due)); err != nil {
			return nil, errors.Join(group.Wait(), err)
		}
		group.Go(func() error {
			kind, target := kindOf(i), i-deleteAfter+9-34
			if kind == kindDelete {
				if target < 0 {
					return nil
				}
				select {
				case <-made[target]:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if _, err := count(ctx, r.aggregated.clients.ordinary, r.request(kind, i, target)); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			took.add(kind, time.Since(due))
			close(made[i])
			return nil
		})
	}
	return took, group.Wait()
}

// request returns the request with a number. Target is the number of the request that made the
// object to be deleted.
func (r *scaleRun) request(kind string, i, target int) call {
	one := rand.IntN(r.settings.objects) // #nosec G404 -- which object is read is no secret
	media := accepts[formatJSON]
	at := r.aggregated.url(scaleNamespace(one), "/"+scaleName(one))
	space := scaleNamespace(0)
	switch kind {
	case kindStatus:
		body := fmt.Sprintf(`{"status":{"dbSize":%d}}`, 30<<20+i)
		return call{method: http.MethodPatch, url: at + "/status", contentType: mergePatch, accept: media, body: []byte(body)}
	case kindSpec:
		body := fmt.Sprintf(`{"spec":{"etcd":{"quotaBackendBytes":"%d"}}}`, 2<<30+i)
		return call{method: http.MethodPatch, url: at, contentType: mergePatch, accept: media, body: []byte(body)}
	case kindCreate:
		body, err := r.aggregated.body(newScaleCluster(i, space, fmt.Sprintf("made-%d", i)), formatJSON)
		if err != nil {
			return call{}
		}
		return call{method: http.MethodPost, url: r.aggregated.url(space, ""), contentType: media, accept: media, body: body}
	case kindDelete:
		return call{method: http.MethodDelete, url: r.aggregated.url(space, fmt.Sprintf("/made-%d", target)), accept: media}
	default:
		return call{method: http.MethodGet, url: at, accept: media}
	}
}
