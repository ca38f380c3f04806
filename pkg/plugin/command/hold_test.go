// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

func TestHoldAndRelease(t *testing.T) {
	series := func(edits ...func(*v1beta2.EtcdBackup)) *v1beta2.EtcdBackup {
		b := &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: plugintest.Namespace, UID: "u", ResourceVersion: "7"}}
		b.Spec.BackupPolicy = &v1beta2.BackupPolicy{Schedule: "@daily"}
		b.Status.URI = "s3://b/3"
		b.Status.History = []v1beta2.BackupRecord{{Succeeded: true, URI: "s3://b/3"}, {Succeeded: true, URI: "s3://b/2"}, {URI: "s3://b/1"}}
		for _, edit := range edits {
			edit(b)
		}
		return b
	}
	single := func(b *v1beta2.EtcdBackup) { b.Spec.BackupPolicy, b.Status.History = nil, nil }
	held := func(b *v1beta2.EtcdBackup) { b.Spec.Hold = ptr.To(true) }
	pinned := func(b *v1beta2.EtcdBackup) { b.Spec.HeldSnapshots = []string{"s3://b/2", "s3://b/3"} }
	empty := func(b *v1beta2.EtcdBackup) { b.Status = v1beta2.BackupStatus{} }
	const of = `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":`
	for name, c := range map[string]struct {
		line   string
		backup *v1beta2.EtcdBackup
		code   failure.Code
		patch  string
		want   string
	}{
		"a series":                               {line: "hold nightly -y", backup: series(), patch: of + `{"hold":true}}`, want: "Hold of EtcdBackup prod/nightly: Its retention deletes nothing"},
		"a single backup":                        {line: "hold nightly -y", backup: series(single), patch: of + `{"hold":true}}`, want: "kubectl etcd backup release nightly -n prod"},
		"a dry run":                              {line: "hold nightly --dry-run", backup: series(), want: "Nothing was changed"},
		"what is held":                           {line: "hold nightly -y", backup: series(held), want: "EtcdBackup prod/nightly is held: there is nothing to do."},
		"nothing stored":                         {line: "hold nightly -y", backup: series(empty), code: failure.CodeNotMet, want: "has stored no backup yet"},
		"a snapshot":                             {line: "hold nightly --snapshot s3://b/2 -y", backup: series(), patch: of + `{"heldSnapshots":["s3://b/2"]}}`, want: "snapshot s3://b/2 is held."},
		"the newest snapshot":                    {line: "hold nightly --latest -y", backup: series(func(b *v1beta2.EtcdBackup) { b.Spec.HeldSnapshots = []string{"s3://b/2"} }), patch: of + `{"heldSnapshots":["s3://b/2","s3://b/3"]}}`},
		"a snapshot that is held":                {line: "hold nightly --latest -y", backup: series(pinned), want: "snapshot s3://b/3 is held: there is nothing to do."},
		"a snapshot that failed":                 {line: "hold nightly --snapshot s3://b/1 -y", backup: series(), code: failure.CodeNotMet, want: "lists no snapshot s3://b/1; list them with kubectl -n prod get etcdbackup nightly"},
		"a snapshot of a single backup":          {line: "hold nightly --latest -y", backup: series(single), code: failure.CodeUsage, want: "leave --snapshot and --latest out"},
		"release":                                {line: "release nightly -y", backup: series(held), patch: of + `{"heldSnapshots":null,"hold":false}}`, want: "EtcdBackup prod/nightly is released."},
		"release of snapshots":                   {line: "release nightly -y", backup: series(pinned), patch: of + `{"heldSnapshots":null,"hold":false}}`, want: "the retention may delete what is released"},
		"release of a snapshot":                  {line: "release nightly --snapshot s3://b/2 -y", backup: series(pinned), patch: of + `{"heldSnapshots":["s3://b/3"]}}`, want: "snapshot s3://b/2 is released."},
		"release of what is not held":            {line: "release nightly -y", backup: series(), want: "EtcdBackup prod/nightly is not held: there is nothing to do."},
		"release of a snapshot that is not held": {line: "release nightly --snapshot s3://b/1 -y", backup: series(pinned), want: "snapshot s3://b/1 is not held: there is nothing to do."},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			path := plugintest.Path("etcdbackups", "nightly")
			server.Put(path, c.backup)
			server.On(http.MethodPatch, path, func(*http.Request, []byte) any { return c.backup })
			p := newTerminal(t, server, false)
			p.expect(p.run(strings.Fields("backup "+c.line)...), c.code, c.want)
			var patches []string
			for _, r := range server.Requests() {
				if !strings.HasSuffix(r.Line, "dryRun") {
					patches = append(patches, r.Body)
				}
			}
			expectPatch(t, patches, c.patch)
		})
	}
}

func TestHoldWithoutTheRight(t *testing.T) {
	server := plugintest.New(t)
	path := plugintest.Path("etcdbackups", "nightly")
	server.Put(path, &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: plugintest.Namespace}, Status: v1beta2.BackupStatus{URI: "s3://b/1"}})
	server.On(http.MethodPatch, path, func(*http.Request, []byte) any { return plugintest.Forbidden("etcdbackups", "nightly") })
	p := newTerminal(t, server, false)
	p.expect(p.run("backup", "hold", "nightly", "-y"), failure.CodeForbidden, "error: the right to patch etcdbackups", "ClusterRole etcd-operator:edit")
	p = newTerminal(t, plugintest.New(t), false)
	p.expect(p.run("backup", "release", "other", "-y"), failure.CodeNotFound, "not found")
}
