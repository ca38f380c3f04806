// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const toVolumeOfCluster = `
  backup:
    storageType: PersistentVolumeClaim
    persistentVolumeClaim: {claimName: backups}`

// TestBackupSubresource posts to the subresource: what spec.backup of the cluster says,
// something else, nothing that could be done, and two at once.
func TestBackupSubresource(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("asked", 1, etcdVersion)
	c.fill()
	s.contains(s.rejected("{}", "create", "--raw", c.raw("backup"), "-f", "-"), "spec.storageType", "spec.backup of the EtcdCluster")
	s.kubectl("patch", "etcdcluster", "asked", "--type=merge", "-p",
		`{"spec":{"backup":{"storageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"backups"},"compression":"Zstd"}}}`)

	dry := post[v1beta2.EtcdBackup](c, "backup?dryRun=All", "{}")
	if list, err := env.Etcd.EtcdV1beta2().EtcdBackups(s.namespace).List(s.ctx(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 || dry.Name == "" {
		t.Fatalf("a dry run made %+v (%v)", list, err)
	}
	made := post[v1beta2.EtcdBackup](c, "backup", "{}")
	if made.UID == "" || made.Spec.Compression != v1beta2.CompressionZstd {
		t.Errorf("made %+v", made)
	}
	// While it is under way there is no second one; if it was quick, there is.
	if out, err := env.Kubectl(s.ctx(), harness.Command{Args: []string{"create", "--raw", c.raw("backup"), "-f", "-"}, Stdin: "{}"}); err != nil {
		s.contains(err.Error(), "is in progress", made.Name)
	} else {
		var second v1beta2.EtcdBackup
		s.must(json.Unmarshal([]byte(out), &second), "read the second one")
		s.awaitBackup(s.ctx(), second.Name, "success", hasSucceeded)
	}
	done := s.awaitBackup(s.ctx(), made.Name, "success", hasSucceeded)
	s.must(s.checkStored(done.Status.URI), "the requested backup")

	body := `{"metadata":{"name":"elsewhere","labels":{"why":"upgrade"}},"spec":{"storageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"backups","path":"else"}}}`
	post[v1beta2.EtcdBackup](c, "backup", body)
	other := s.awaitBackup(s.ctx(), "elsewhere", "success", hasSucceeded)
	s.contains(other.Status.URI, "pvc://backups/else/")
	if other.Labels["why"] != "upgrade" {
		t.Errorf("labels %v", other.Labels)
	}
}

// loadKubectl brings the image of kubectl to the nodes of the local Kubernetes, which pull
// nothing. The nodes of other clusters pull it.
var loadKubectl = sync.OnceValue(func() error {
	if !env.IsLocal() {
		return nil
	}
	images, err := env.LocalTool(context.Background(), "images-dir")
	if err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(images, "kubectl-v*.tar"))
	if err != nil {
		return err
	}
	_, err = env.LocalTool(context.Background(), append([]string{"load"}, archives...)...)
	return err
})

// TestBackupCronJob applies the published CronJob, which makes a backup when its time has
// come, and does what else its service account could try.
func TestBackupCronJob(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.must(loadKubectl(), "bring the image of kubectl")
	s.volume()
	c := s.create("example-etcd-cluster", 1, etcdVersion, toVolumeOfCluster)
	c.fill()
	text, err := os.ReadFile(env.Artifact("examples", "backup-cronjob.yaml"))
	s.must(err, "read the example")
	published := string(text)
	mine := strings.NewReplacer("namespace: default", "namespace: "+s.namespace, `"30 2 * * *"`, `"* * * * *"`).Replace(published)
	if strings.Count(mine, s.namespace) != 1 || !strings.Contains(mine, `"* * * * *"`) {
		t.Fatalf("the example has another shape:\n%s", published)
	}
	s.apply(mine)
	s.cronJobAccountIsBounded()

	// A Job made by hand from it, and one that its schedule makes.
	s.kubectl("create", "job", "now", "--from=cronjob/etcd-backup")
	s.kubectl("wait", "--for=condition=complete", "job/now", "--timeout=100s")
	first := s.awaitBackups(1)
	done := s.awaitBackup(s.ctx(), first[0].Name, "success", hasSucceeded)
	s.must(s.checkStored(done.Status.URI), "the backup that a Job has asked for")
	second := s.awaitBackups(2)
	last := s.awaitBackup(s.ctx(), second[1].Name, "success", hasSucceeded)
	s.must(s.checkStored(last.Status.URI), "the backup that was made on schedule")
	s.kubectl("delete", "cronjob", "etcd-backup")
}

// awaitBackups waits until there are so many EtcdBackups and returns them, oldest first.
func (s *scenario) awaitBackups(n int) []*v1beta2.EtcdBackup {
	s.Helper()
	view, err := env.Backups(s.ctx(), s.namespace)
	s.must(err, "watch backups")
	defer view.Close()
	var found []*v1beta2.EtcdBackup
	s.must(view.Await(s.ctx(), func(list []*v1beta2.EtcdBackup) bool {
		found = slices.Clone(list)
		return len(list) >= n
	}), "%d backups", n)
	return found
}

// cronJobAccountIsBounded tries what the service account of the CronJob may not do.
func (s *scenario) cronJobAccountIsBounded() {
	s.Helper()
	as := "--as=system:serviceaccount:" + s.namespace + ":etcd-backup"
	out := s.kubectl("auth", "can-i", "--list", "--no-headers", as)
	for line := range strings.Lines(out) {
		if strings.Contains(line, "database.coreos.com") && !strings.HasPrefix(line, "etcdclusters.etcd.database.coreos.com/backup ") {
			s.Errorf("it may: %s", line)
		}
	}
	s.contains(out, "etcdclusters.etcd.database.coreos.com/backup")
	at := "/apis/" + v1beta2.SchemeGroupVersion.String() + "/namespaces/" + s.namespace + "/etcdclusters/"
	for _, args := range [][]string{
		{"get", "etcdclusters"}, {"get", "etcdbackups"}, {"get", "secrets"}, {"get", "pods"},
		{"delete", "etcdbackups", "--all"}, {"delete", "etcdcluster", "example-etcd-cluster"},
		{"get", "--raw", at + "example-etcd-cluster/proxy/snapshot"}, {"get", "--raw", at + "example-etcd-cluster/health"},
		{"create", "--raw", at + "example-etcd-cluster/defrag", "-f", "/dev/null"},
		{"create", "--raw", at + "another/backup", "-f", "/dev/null"},
	} {
		s.contains(s.rejected("", append(args, as)...), "orbidden")
	}
	s.contains(s.rejected(backupManifest("mine", "  etcdCluster: {name: example-etcd-cluster}"+toVolume), "create", "-f", "-", as), "orbidden")
}
