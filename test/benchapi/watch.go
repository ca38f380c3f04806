// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// errWatch means that a watch did not show every update.
var errWatch = errors.New("a watch ended before it showed every update")

// eventPatience is how long watchers may need for all events.
const eventPatience = time.Minute

// watchFanOut opens watches, each with a connection of its own as separate programs have it, and
// updates objects one after the other. The result is for each update. Its latencies are the times
// from the start of an update until the last watcher has its event.
func watchFanOut(ctx context.Context, st *stage, s *serving, l line) (result, error) {
	calls, err := st.statusCalls(ctx, s, line{format: formatJSON}, watchedNamespace, created.Add(1))
	if err != nil {
		return result{}, err
	}
	from, err := resourceVersion(ctx, s)
	if err != nil {
		return result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	bodies := make([]io.ReadCloser, l.watchers)
	for i := range bodies {
		client, err := newClient(s.config(l.user))
		if err != nil {
			return result{}, err
		}
		defer client.CloseIdleConnections()
		response, err := open(ctx, client, call{
			method: http.MethodGet, url: s.url(watchedNamespace, "?watch=true&resourceVersion="+from), accept: watchAccept(s.format(l.format)),
		})
		if err != nil {
			return result{}, err
		}
		defer response.Body.Close()
		bodies[i] = response.Body
	}
	return st.fanOut(ctx, s, l, calls, bodies)
}

func (st *stage) fanOut(ctx context.Context, s *serving, l line, calls []call, bodies []io.ReadCloser) (result, error) {
	arrived := make([][]time.Time, len(bodies))
	w, err := st.openWindow(ctx)
	if err != nil {
		return result{}, err
	}
	var group errgroup.Group
	for i, body := range bodies {
		group.Go(func() (err error) {
			arrived[i], err = readEvents(body, s.format(l.format), len(calls))
			return err
		})
	}
	begun := make([]time.Time, len(calls))
	for i, c := range calls {
		begun[i] = time.Now()
		if _, err := count(ctx, s.client(l.user), c); err != nil {
			return result{}, errors.Join(err, group.Wait())
		}
	}
	if err := group.Wait(); err != nil {
		return result{}, err
	}
	latencies := make([]time.Duration, len(calls))
	for _, times := range arrived {
		for i, at := range times {
			latencies[i] = max(latencies[i], at.Sub(begun[i]))
		}
	}
	r, err := w.close(latencies)
	r.Requests = len(calls)
	return r, err
}

// resourceVersion returns where a watch begins. It comes from the list, not from an object: a
// watch from an older version would replay what happened since.
func resourceVersion(ctx context.Context, s *serving) (string, error) {
	content, err := send(ctx, s.clients.admin, call{method: http.MethodGet, url: s.url(watchedNamespace, "?limit=1"), accept: accepts[formatJSON]})
	if err != nil {
		return "", err
	}
	var head struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	err = json.Unmarshal(content, &head)
	return head.Metadata.ResourceVersion, err
}

// watchAccept is what an informer accepts.
func watchAccept(format string) string {
	if format == formatProtobuf {
		return accepts[formatProtobuf] + ";stream=watch"
	}
	return accepts[format]
}

// readEvents returns when each event arrived. It counts events and does not decode them, so that
// all servings cost the client the same.
func readEvents(body io.Reader, format string, number int) ([]time.Time, error) {
	reader := bufio.NewReaderSize(body, 1<<16)
	next := nextLine
	if format == formatProtobuf {
		next = nextFrame
	}
	var arrived []time.Time
	for len(arrived) < number {
		if err := next(reader); err != nil {
			return arrived, fmt.Errorf("%w: %d of %d: %w", errWatch, len(arrived), number, err)
		}
		arrived = append(arrived, time.Now())
	}
	return arrived, nil
}

// nextLine reads an event as JSON, which ends with a line feed.
func nextLine(reader *bufio.Reader) error {
	for {
		_, err := reader.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// nextFrame reads an event as protobuf, which begins with its length.
func nextFrame(reader *bufio.Reader) error {
	var length uint32
	if err := binary.Read(reader, binary.BigEndian, &length); err != nil {
		return err
	}
	_, err := reader.Discard(int(length))
	return err
}
