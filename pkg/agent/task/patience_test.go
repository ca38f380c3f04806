// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/file"
)

// TestConnectionRefusedIsRetried opens a store that takes no connection at first.
func TestConnectionRefusedIsRetried(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	request := &agent.Request{
		ID: "i", Verify: &agent.Verify{Expected: agent.Expected{Key: "none"}},
		Store: &agent.Store{Type: v1beta2.BackupStorageTypePersistentVolumeClaim, Bucket: "claim", VolumeDir: dir},
	}
	rejected := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for name, test := range map[string]struct {
		err      error
		patience time.Duration
		tries    int
		class    agent.ErrorClass
	}{
		"the store is there in time":  {rejected, time.Minute, 3, agent.ClassNotFound},
		"the member is there in time": {&etcd.Error{Op: "ask", Kind: etcd.ErrUnavailable}, time.Minute, 3, agent.ClassNotFound},
		"too late":                    {rejected, patienceStep, 2, agent.ClassInternal},
		"no patience":                 {rejected, 0, 1, agent.ClassInternal},
		"another failure is final":    {objectstore.ErrDenied, time.Minute, 1, agent.ClassStoreDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			r := &Runner{Clock: clock.RealClock{}, Progress: &Progress{}, Patience: test.patience}
			r.Open = func(context.Context, *agent.Store, time.Duration) (objectstore.Store, error) {
				if tries++; tries < 3 {
					return nil, test.err
				}
				return file.New(dir)
			}
			result := r.Run(t.Context(), agent.CommandVerify, request)
			if tries != test.tries || result.Error == nil || result.Error.Class != test.class {
				t.Errorf("%d tries, %v", tries, result.Error)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &Runner{Clock: clock.RealClock{}, Progress: &Progress{}, Patience: time.Hour}
	r.Open = func(context.Context, *agent.Store, time.Duration) (objectstore.Store, error) {
		cancel()
		return nil, rejected
	}
	if result := r.Run(ctx, agent.CommandVerify, request); result.Error == nil || errors.Is(result.Error, context.DeadlineExceeded) {
		t.Errorf("it received a signal to stop: %v", result.Error)
	}
}
