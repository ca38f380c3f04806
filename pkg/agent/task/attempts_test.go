// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"io"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// TestAttemptOnALostNodeDeletesOnlyItsOwn: the node comes back after the next attempt has stored the backup, and Kubernetes
// ends the agent there. The agent deletes what it did not complete, and nothing of the backup at the same revision.
func TestAttemptOnALostNodeDeletesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, etcdtest.New(t))
	first := b.saveRequest("id-1", manifest.LayoutDirectory)
	first.Save.Attempt = 1
	whole, next := b.store, (*agent.Result)(nil)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	b.store = &breaking{Store: whole, put: func(ctx context.Context, _ string, _ io.Reader) error {
		b.store = whole
		second, save := *first, *first.Save
		save.Attempt = 2
		second.Save = &save
		next = b.mustRun(agent.CommandSave, &second)
		end()
		return context.Cause(ctx)
	}}
	if result := b.runner.Run(ctx, agent.CommandSave, first); result.Error == nil || result.Error.Class != agent.ClassCanceled {
		t.Fatalf("the first attempt: %+v", result)
	}
	b.checkSaved(next, "", false)
	if again := b.mustRun(agent.CommandSave, first); !again.AlreadyDone || again.Key != next.Key {
		t.Errorf("another attempt does not find the backup: %+v", again)
	}
}
