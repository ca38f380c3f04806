// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// watchConnections is how many connections the watches share.
	watchConnections = 20
	// watchBuffer is what a watch reads at once: more than the begin of an event.
	watchBuffer = 16 << 10
)

// errNoVersion means that an event does not look as expected.
var errNoVersion = errors.New("an event has no resource version at its beginning")

// storageWatch reads the changes from etcd itself, as the truth.
type storageWatch struct {
	client *clientv3.Client
	events clientv3.WatchChan
	err    error
}

func (r *scaleRun) watchStorage(ctx context.Context, after uint64) *storageWatch {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{r.etcdURL[ownEtcd]}, DialTimeout: startPatience})
	if err != nil {
		return &storageWatch{err: err}
	}
	next := int64(after) + 1 // #nosec G115 -- versions of etcd are positive int64
	return &storageWatch{client: client, events: client.Watch(ctx, storagePrefix, clientv3.WithPrefix(), clientv3.WithRev(next))}
}

// until returns the versions of all changes up to the last one.
func (s *storageWatch) until(ctx context.Context, last uint64) ([]uint64, error) {
	if s.err != nil {
		return nil, s.err
	}
	defer s.client.Close()
	var versions []uint64
	for {
		select {
		case response, open := <-s.events:
			if err := response.Err(); err != nil || !open {
				return nil, errors.Join(errWatch, err)
			}
			for _, event := range response.Events {
				versions = append(versions, uint64(event.Kv.ModRevision)) // #nosec G115 -- versions are positive
			}
			if len(versions) > 0 && versions[len(versions)-1] >= last {
				return versions, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// watchSet is many watches over few connections.
type watchSet struct {
	clients []*http.Client
	watches []*oneWatch
	readers sync.WaitGroup
}

// oneWatch is one watch. Its reader alone changes versions until it has ended.
type oneWatch struct {
	// open opens the watch after a version.
	open     func(after uint64) (io.ReadCloser, error)
	versions []uint64
	// reopened is how often the server has ended the watch, and the reader has begun it again. The
	// watch cache ends watches whose readers are slow; every client continues then.
	reopened int
	// last is the newest version that was read.
	last atomic.Uint64
	// ended is closed with the end of the watch, or with the last version.
	ended chan struct{}

	mu     sync.Mutex
	body   io.ReadCloser
	closed bool
}

// openWatches opens watches that start after a version.
func (r *scaleRun) openWatches(ctx context.Context, after uint64) (*watchSet, error) {
	set := &watchSet{}
	for range min(watchConnections, r.settings.watchers) {
		client, err := newClient(r.direct.admin)
		if err != nil {
			return set, err
		}
		set.clients = append(set.clients, client)
	}
	for i := range r.settings.watchers {
		w := &oneWatch{ended: make(chan struct{}), open: func(after uint64) (io.ReadCloser, error) {
			response, err := open(ctx, set.clients[i%len(set.clients)], call{
				method: http.MethodGet, url: fmt.Sprintf("%s?watch=true&resourceVersion=%d", r.direct.resourcePath(), after), accept: accepts[formatJSON],
			})
			if err != nil {
				return nil, err
			}
			return response.Body, nil
		}}
		body, err := w.open(after)
		if err != nil {
			set.close()
			return nil, fmt.Errorf("watch %d: %w", i, err)
		}
		w.body = body
		w.last.Store(after)
		set.watches = append(set.watches, w)
	}
	return set, nil
}

// start reads all watches.
func (s *watchSet) start() {
	for _, w := range s.watches {
		s.readers.Go(w.read)
	}
}

// read reads events until the watch is closed, or cannot continue.
func (w *oneWatch) read() {
	defer close(w.ended)
	reader := bufio.NewReaderSize(w.body, watchBuffer)
	for {
		version, err := nextVersion(reader)
		switch {
		case err == nil:
			w.versions = append(w.versions, version)
			w.last.Store(version)
		case errors.Is(err, errNoVersion) || !w.reopen():
			return
		default:
			reader.Reset(w.body)
		}
	}
}

// reopen begins the watch again after the newest version. It returns false if the watch was
// closed, or cannot be opened.
func (w *oneWatch) reopen() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	_ = w.body.Close()
	body, err := w.open(w.last.Load())
	if err != nil {
		return false
	}
	w.body = body
	w.reopened++
	return true
}

// close ends the watch.
func (w *oneWatch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.body != nil {
		_ = w.body.Close()
	}
}

// nextVersion reads an event and returns the version of its object.
func nextVersion(reader *bufio.Reader) (uint64, error) {
	head, err := reader.ReadSlice('\n')
	version, errVersion := versionOfEvent(head)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = reader.ReadSlice('\n')
	}
	if err != nil {
		return 0, err
	}
	return version, errVersion
}

// versionOfEvent finds the version in the metadata, which comes before the managed fields and
// the spec. It decodes nothing else: the program shares the machine with the servers.
func versionOfEvent(head []byte) (uint64, error) {
	_, rest, found := bytes.Cut(head, []byte(`"resourceVersion":"`))
	digits, _, closed := bytes.Cut(rest, []byte(`"`))
	if !found || !closed {
		return 0, errNoVersion
	}
	return strconv.ParseUint(string(digits), 10, 64)
}

// until waits until every watch has read the last version, or has ended, or the time is over. It
// ends the watches and returns what each has read, and how often watches were opened again.
func (s *watchSet) until(ctx context.Context, last uint64) (all [][]uint64, reopened int) {
	for _, w := range s.watches {
		for w.last.Load() < last && pause(ctx, settle) == nil {
			if isClosed(w.ended) {
				break
			}
		}
	}
	s.close()
	s.readers.Wait()
	for _, w := range s.watches {
		all = append(all, w.versions)
		reopened += w.reopened
	}
	return all, reopened
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// close ends all watches.
func (s *watchSet) close() {
	for _, w := range s.watches {
		w.close()
	}
	for _, client := range s.clients {
		client.CloseIdleConnections()
	}
}

// compareEvents returns how many of the wanted versions were not read, and how many were read
// again or out of order.
func compareEvents(want, read []uint64) (missed, repeated int) {
	next, newest := 0, uint64(0)
	for _, version := range read {
		if version <= newest {
			repeated++
			continue
		}
		newest = version
		for next < len(want) && want[next] < version {
			missed++
			next++
		}
		if next < len(want) && want[next] == version {
			next++
		}
	}
	return missed + len(want) - next, repeated
}
