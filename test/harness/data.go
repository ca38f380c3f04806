// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	dataPrefix = "data/"
	// fillWriters write side by side, so that filling does not wait for one disk
	// write after the other.
	fillWriters = 16
	// checkTimeout bounds one check of all data on all members. The hash of a database of
	// 8 GiB takes most of it.
	checkTimeout = 10 * time.Minute
)

// Data is what was written into a cluster and must be found again.
type Data map[string]string

// Fill writes n keys with values of size bytes through one member.
func (m *Members) Fill(ctx context.Context, n, size int) (Data, error) {
	live := m.Live()
	if len(live) == 0 {
		return nil, errors.New("no member to write to")
	}
	c, err := m.Client(live[0])
	if err != nil {
		return nil, err
	}
	data := Data{}
	for i := range n {
		value := fmt.Sprintf("%d-%x", i, rand.Uint64())
		data[fmt.Sprintf("%s%06d", dataPrefix, i)] = value + strings.Repeat(".", max(0, size-len(value)))
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(fillWriters)
	for key, value := range data {
		group.Go(func() error {
			return untilWritten(groupCtx, c, key, value)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	return data, nil
}

// Holds returns an error unless each live member has exactly this data in its own
// database, and all databases have the same hash.
func (m *Members) Holds(ctx context.Context, data Data) error {
	return m.onEach(ctx, dataPrefix, func(found map[string]string) error {
		if len(found) != len(data) {
			return fmt.Errorf("it has %d of %d keys", len(found), len(data))
		}
		for key, value := range data {
			if found[key] != value {
				return fmt.Errorf("key %s is %q, not %q", key, found[key], value)
			}
		}
		return nil
	})
}

// onEach gives the keys below prefix that each member holds to check. The read is
// linearizable, so a member responds from its own database after that has taken in everything
// that was acknowledged before.
func (m *Members) onEach(ctx context.Context, prefix string, check func(map[string]string) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var mu sync.Mutex
	var revision int64
	err := m.Each(ctx, func(ctx context.Context, _ *corev1.Pod, c *clientv3.Client) error {
		r, err := c.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		found := make(map[string]string, len(r.Kvs))
		for _, kv := range r.Kvs {
			found[string(kv.Key)] = string(kv.Value)
		}
		if err := check(found); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if revision == 0 || r.Header.Revision < revision {
			revision = r.Header.Revision
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.sameHash(ctx, revision)
}

// sameHash compares the members' databases up to a revision.
func (m *Members) sameHash(ctx context.Context, revision int64) error {
	var mu sync.Mutex
	hashes := map[uint32][]string{}
	err := m.Each(ctx, func(ctx context.Context, pod *corev1.Pod, c *clientv3.Client) error {
		r, err := c.HashKV(ctx, c.Endpoints()[0], revision)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		hashes[r.Hash] = append(hashes[r.Hash], pod.Name)
		return nil
	})
	if err == nil && len(hashes) > 1 {
		err = fmt.Errorf("the members' databases differ at revision %d: %v", revision, hashes)
	}
	return err
}

// Put writes one key through a pod, trying again while the cluster elects a leader.
func (m *Members) Put(ctx context.Context, key, value string) error {
	return m.change(ctx, "put "+key, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Put(ctx, key, value)
		return err
	})
}

// Delete deletes one key through a pod, trying again while the cluster elects a leader.
func (m *Members) Delete(ctx context.Context, key string) error {
	return m.change(ctx, "delete "+key, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Delete(ctx, key)
		return err
	})
}

// changeThrough makes a write through one pod. A pod that does not respond leaves time for the others.
func (m *Members) changeThrough(ctx context.Context, pod *corev1.Pod, write func(context.Context, *clientv3.Client) error) error {
	c, err := m.Client(pod)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return write(ctx, c)
}

// change repeats a write through one pod after the other until it succeeds: a client of etcd repeats reads only.
func (m *Members) change(ctx context.Context, what string, write func(context.Context, *clientv3.Client) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, PollInterval, true, func(ctx context.Context) (bool, error) {
		for _, p := range m.Live() {
			if last = m.changeThrough(ctx, p, write); last == nil {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w; at last: %w", what, err, last)
	}
	return nil
}
