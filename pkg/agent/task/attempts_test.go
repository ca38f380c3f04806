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

// TestATransferOfAnotherClusterIsNotDone: a copy of the Kubernetes cluster has the same objects, so the same transfers, and
// stores in the same place. What it has stored is another cluster's data, whatever its ID says.
func TestATransferOfAnotherClusterIsNotDone(t *testing.T) {
	copied := newBench(t, etcdtest.New(t))
	own := newBench(t, etcdtest.New(t))
	own.dir, own.store = copied.dir, copied.store
	for _, layout := range []manifest.Layout{manifest.LayoutDirectory, manifest.LayoutObject} {
		request := copied.saveRequest("id-1", layout)
		request.Store = copied.storePlace("backups/" + string(layout))
		other := copied.mustRun(agent.CommandSave, request)
		request.Etcd = own.saveRequest("id-1", layout).Etcd
		saved := own.mustRun(agent.CommandSave, request)
		if saved.AlreadyDone || saved.SHA256 == other.SHA256 {
			t.Errorf("%s: the data of the other cluster passes for the backup: %+v", layout, saved)
		}
		if again := own.mustRun(agent.CommandSave, request); !again.AlreadyDone || again.SHA256 != saved.SHA256 {
			t.Errorf("%s: another attempt does not find the backup: %+v", layout, again)
		}
	}
	// Where no member responds, nothing tells the clusters apart, and the data is there.
	request := copied.saveRequest("id-2", manifest.LayoutDirectory)
	copied.mustRun(agent.CommandSave, request)
	request.Etcd = own.saveRequest("id-2", manifest.LayoutDirectory).Etcd
	own.cluster.Member("m0").Kill()
	if again := own.mustRun(agent.CommandSave, request); !again.AlreadyDone {
		t.Errorf("without a member: %+v", again)
	}
}
