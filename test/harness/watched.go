// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

// seenEvent is one event of a watch.
type seenEvent struct {
	kind    watch.EventType
	uid     types.UID
	version string
}

// history is everything that one watcher saw. The watcher is that of client-go, which watches
// again from the last version when a watch ends.
type history struct {
	watcher *watchtools.RetryWatcher

	mu      sync.Mutex
	events  []seenEvent
	errs    []error
	changed chan struct{}
}

// backupWatcher watches the EtcdBackups of a namespace.
type backupWatcher struct {
	client    versioned.Interface
	namespace string
}

func (w backupWatcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.client.EtcdV1beta2().EtcdBackups(w.namespace).Watch(ctx, options)
}

// watchHistory watches from a version on.
func watchHistory(ctx context.Context, client versioned.Interface, namespace, version string) (*history, error) {
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, backupWatcher{client: client, namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("watch from version %s: %w", version, err)
	}
	h := &history{watcher: watcher, changed: make(chan struct{}, 1)}
	go h.follow()
	return h, nil
}

func (h *history) follow() {
	for event := range h.watcher.ResultChan() {
		h.add(event)
		select {
		case h.changed <- struct{}{}:
		default:
		}
	}
	close(h.changed)
}

func (h *history) add(event watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	object, err := meta.Accessor(event.Object)
	if event.Type == watch.Error || err != nil {
		h.errs = append(h.errs, fmt.Errorf("event %s: %+v", event.Type, event.Object))
		return
	}
	h.events = append(h.events, seenEvent{kind: event.Type, uid: object.GetUID(), version: object.GetResourceVersion()})
}

func (h *history) list() []seenEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// await returns when the object was seen.
func (h *history) await(ctx context.Context, uid types.UID) error {
	for {
		if slices.ContainsFunc(h.list(), func(e seenEvent) bool { return e.uid == uid }) {
			return nil
		}
		select {
		case _, ok := <-h.changed:
			if !ok {
				return fmt.Errorf("the watch ended: %v", h.errs)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (h *history) close() { h.watcher.Stop() }

// compare returns what is wrong with a history. Versions must grow, so that no event came twice.
// Every acknowledged write must be in it. It must be that of the other watcher.
func (h *history) compare(name string, written []acknowledged, other []seenEvent) []string {
	return compareHistory(name, h.list(), written, other)
}

func compareHistory(name string, events []seenEvent, written []acknowledged, other []seenEvent) []string {
	var problems []string
	seen := map[acknowledged]bool{}
	last := uint64(0)
	for _, e := range events {
		version, err := strconv.ParseUint(e.version, 10, 64)
		if err != nil || version <= last {
			problems = append(problems, fmt.Sprintf("%s saw version %s of %s after version %d", name, e.version, e.uid, last))
		}
		last = max(last, version)
		seen[acknowledged{uid: e.uid, version: e.version}] = true
	}
	for _, w := range written {
		if !seen[w] {
			problems = append(problems, fmt.Sprintf("%s missed version %s of %s", name, w.version, w.uid))
		}
	}
	// The last events may still be on their way to one of the two.
	for i := range min(len(events), len(other)) {
		if events[i] != other[i] {
			return append(problems, fmt.Sprintf("%s saw %v as event %d, and another watcher %v", name, events[i], i, other[i]))
		}
	}
	return problems
}
