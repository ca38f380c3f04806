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
// Under the alarm CORRUPT the pre-restore backup may have the wrong data.
func TestRestoreOfOtherDataIsWarnedOf(t *testing.T) {
	t.Parallel()
	storage, backups, _ := withRestores(t)
	a := create(t, storage, valid("a"))
	backedUp(t, backups, a, "own", time.Minute)
	backedUp(t, backups, a, "earlier", -time.Minute)
	backedUp(t, backups, create(t, storage, valid("b")), "theirs", time.Minute)
	corrupt := create(t, storage, valid("corrupt")).DeepCopy()
	backedUp(t, backups, corrupt, "before-the-alarm", time.Minute)
	corrupt.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "m", Alarms: []string{"CORRUPT"}}}
	write(t, storage.Status, "etcdclusters", corrupt, "corrupt")
	for backup, test := range map[string]struct{ into, want string }{
		"own": {"a", ""}, "earlier": {"a", "earlier EtcdCluster of that name"}, "theirs": {"a", "is a backup of b"}, "before-the-alarm": {"corrupt", "save the data of each member"},
	} {
		var said heard
		ctx := warning.WithWarningRecorder(registrytest.Context(t.Context(), ns, "etcdclusters", "restore"), &said)
		asked := &v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: backup}}}
		if _, err := storage.Restore.Create(ctx, test.into, asked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(said, " "); test.want == "" && text != "" || !strings.Contains(text, test.want) {
			t.Errorf("restore of %s is warned of with %q, want %q", backup, text, test.want)
		}
	}
}
