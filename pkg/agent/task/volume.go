// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// onVolume runs a task whose store is a PVC, and ends it with ErrStalled once a call of the file system takes longer than
// the time stall. Such a call ends with no context: on a network file system whose server is down it blocks until the server
// is back. So its goroutine cannot be ended and stays, with what it holds, until the process ends. The kernel ends calls of
// NFS with the process. A process in uninterruptible sleep, such as of a block device, is the kubelet's to end.
// onVolume then returns a result of its own, because the goroutine may still write to that of the task.
func (r *Runner) onVolume(ctx context.Context, store *agent.Store, stall time.Duration, result *agent.Result,
	do func(context.Context, *Runner, *agent.Result) error,
) (*agent.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what waits for a member ends
	v := &volume{pvc: store.Bucket, stall: stall, clock: r.timers(), hung: make(chan error, 1)}
	watched := *r
	watched.Open = v.open(r.Open)
	given, done := *result, make(chan error, 1)
	go func() { done <- do(ctx, &watched, result) }()
	select {
	case err := <-done:
		return result, err
	case err := <-v.hung:
		return &given, err
	}
}

func (r *Runner) timers() clock.WithDelayedExecution {
	if r.Timers == nil {
		return clock.RealClock{}
	}
	return r.Timers
}

// volume watches the calls of a store on a PVC. Only the time within the volume counts: while a snapshot is stored, the
// volume waits for its member, which has a limit of its own.
type volume struct {
	objectstore.Store

	pvc   string
	stall time.Duration
	clock clock.WithDelayedExecution
	// hung has room for the first call that takes too long.
	hung chan error
}

// call is a call of the file system that is under way.
type call struct {
	timer clock.Timer
	stall time.Duration
}

// begin begins the watch of a call, until pause.
func (v *volume) begin(op, key string) *call {
	return &call{stall: v.stall, timer: v.clock.AfterFunc(v.stall, func() {
		cause := fmt.Errorf("the volume of PVC %s has not responded for %s; check the server of its file system, and the node of the pod", v.pvc, v.stall)
		select {
		case v.hung <- &objectstore.Error{Op: op, Key: key, Kind: objectstore.ErrStalled, Cause: cause}:
		default:
		}
	})}
}

func (c *call) pause()  { c.timer.Stop() }
func (c *call) resume() { c.timer.Reset(c.stall) }

type opener = func(context.Context, *agent.Store, time.Duration) (objectstore.Store, error)

// open opens the store that is watched.
func (v *volume) open(open opener) opener {
	return func(ctx context.Context, s *agent.Store, stall time.Duration) (objectstore.Store, error) {
		defer v.begin("open", s.VolumeDir).pause()
		store, err := open(ctx, s, stall)
		if err != nil {
			return nil, err
		}
		v.Store = store
		return v, nil
	}
}

// Put implements objectstore.Store.
func (v *volume) Put(ctx context.Context, key string, r io.Reader, options objectstore.PutOptions) (objectstore.Written, error) {
	c := v.begin("put", key)
	defer c.pause()
	return v.Store.Put(ctx, key, &outside{r, c}, options)
}

// outside is read by a call, which waits for another program meanwhile.
type outside struct {
	io.Reader
	*call
}

// Read implements io.Reader.
func (o *outside) Read(p []byte) (int, error) {
	o.pause()
	defer o.resume()
	return o.Reader.Read(p)
}

// Get implements objectstore.Store.
func (v *volume) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	c := v.begin("get", key)
	defer c.pause()
	body, err := v.Store.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	return &inside{body, func() *call { return v.begin("get", key) }}, nil
}

// inside is a file of the volume.
type inside struct {
	io.ReadCloser

	begin func() *call
}

// Read implements io.Reader.
func (i *inside) Read(p []byte) (int, error) {
	defer i.begin().pause()
	return i.ReadCloser.Read(p)
}

// Close implements io.Closer.
func (i *inside) Close() error {
	defer i.begin().pause()
	return i.ReadCloser.Close()
}

// Stat implements objectstore.Store.
func (v *volume) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	defer v.begin("stat", key).pause()
	return v.Store.Stat(ctx, key)
}

// List implements objectstore.Store.
func (v *volume) List(ctx context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		c := v.begin("list", prefix)
		defer c.pause()
		for object, err := range v.Store.List(ctx, prefix) {
			c.pause()
			if !yield(object, err) {
				return
			}
			c.resume()
		}
	}
}

// Delete implements objectstore.Store.
func (v *volume) Delete(ctx context.Context, key string) error {
	defer v.begin("delete", key).pause()
	return v.Store.Delete(ctx, key)
}

// AbortUploads implements objectstore.Store.
func (v *volume) AbortUploads(ctx context.Context, prefix string, ours func(key string) bool, before time.Time) (int, error) {
	defer v.begin("abort uploads", prefix).pause()
	return v.Store.AbortUploads(ctx, prefix, ours, before)
}
