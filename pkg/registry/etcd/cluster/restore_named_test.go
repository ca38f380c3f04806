// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
)

// TestRestoreOfOtherDataIsWarnedOf: to restore the backup of another cluster is a use, and a mistake that costs the data.
func TestRestoreOfOtherDataIsWarnedOf(t *testing.T) {
	t.Parallel()
	storage, backups, _ := withRestores(t)
	a := create(t, storage, valid("a"))
	backedUp(t, backups, a, "own", time.Minute)
	backedUp(t, backups, a, "earlier", -time.Minute)
	backedUp(t, backups, create(t, storage, valid("b")), "theirs", time.Minute)
	for backup, want := range map[string]string{"own": "", "earlier": "earlier EtcdCluster of that name", "theirs": "is a backup of b"} {
		var said heard
		ctx := warning.WithWarningRecorder(registrytest.Context(t.Context(), ns, "etcdclusters", "restore"), &said)
		asked := &v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: backup}}}
		if _, err := storage.Restore.Create(ctx, "a", asked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(said, " "); want == "" && text != "" || !strings.Contains(text, want) {
			t.Errorf("restore of %s is warned of with %q, want %q", backup, text, want)
		}
	}
}
