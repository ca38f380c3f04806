// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// backedUp makes an EtcdBackup of a cluster that has just succeeded, and reports it as its last backup.
func backedUp(t *testing.T, namespace, cluster, name string, revision int64) {
	t.Helper()
	backups := env.etcd.EtcdV1beta2().EtcdBackups(namespace)
	made, err := backups.Create(t.Context(), &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: cluster}, StorageType: v1beta2.BackupStorageTypePersistentVolumeClaim,
			BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status = v1beta2.BackupStatus{
		Phase: v1beta2.BackupPhaseSucceeded, Succeeded: true, Verified: true, EtcdRevision: revision,
		LastSuccessDate: metav1.NewTime(made.CreationTimestamp.Add(time.Minute)), URI: "pvc://backups/" + name + "/snapshot.db",
	}
	if _, err := backups.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	of, err := clustersIn(namespace).Get(t.Context(), cluster, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of.Status.LastBackup = &v1beta2.LastBackup{Name: name, Time: made.Status.LastSuccessDate, Revision: revision, Verified: true}
	if _, err := clustersIn(namespace).UpdateStatus(t.Context(), of, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreIsAskedFor posts to the subresource as a user does: with nothing, with an empty
// object, and with a body that must be rejected.
func TestRestoreIsAskedFor(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	created := create(t, namespace, newCluster("a"))
	path := raw(namespace, "a", "restore")
	for _, body := range []string{"", "{}"} {
		if output, err := post(t, body, path); err == nil || !strings.Contains(output, "spec.backup") || !strings.Contains(output, "no backup of this cluster is known") {
			t.Errorf("%q without a backup: %v %s", body, err, output)
		}
	}
	backedUp(t, namespace, "a", "once", 81)
	for body, says := range map[string]string{
		`{"spec":{"etcdCluster":{"name":"b"}}}`:                                  "spec.etcdCluster.name",
		`{"spec":{"clusterTemplate":{"spec":{"size":3}}}}`:                       "spec.clusterTemplate",
		`{"spec":{"backupStorageType":"Tape"}}`:                                  "spec.backupStorageType",
		`{"spec":{"bakcup":{"name":"older"}}}`:                                   `unknown field "spec.bakcup"`,
		`{"backup":{"name":"older"}}`:                                            `unknown field "backup"`,
		`{"metadata":{"uid":"other"}}`:                                           "UID",
		`{"metadata":{"resourceVersion":"1"}}`:                                   "resource version",
		`{"kind":"EtcdCluster","apiVersion":"etcd.database.coreos.com/v1beta2"}`: "EtcdCluster",
		`nothing`: "must be an object",
	} {
		if output, err := post(t, body, path); err == nil || !strings.Contains(output, says) {
			t.Errorf("%s: %v %s, want %s", body, err, output, says)
		}
	}
	contains(t, rejectedKubectl(t, "{}", "create", "--raw", raw(namespace, "nosuch", "restore"), "-f", "-"), "not found")
	output, err := post(t, "", path+"?dryRun=All")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, output, `"kind":"EtcdRestore"`, `"revision":81`, "Warning: The cluster is restored from EtcdBackup once of 20", "pre-restore backup")
	restores := env.etcd.EtcdV1beta2().EtcdRestores(namespace)
	if list, err := restores.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Fatalf("a rejected request or a dry run has left %+v (%v)", list, err)
	}

	for _, body := range []string{"", fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{"why":"accident"}}}`, created.UID)} {
		output, err := post(t, body, path)
		if err != nil {
			t.Fatal(err)
		}
		var made v1beta2.EtcdRestore
		_, output, _ = strings.Cut(output, "\n") // the warning
		if err := json.Unmarshal([]byte(output), &made); err != nil || made.Spec.EtcdCluster.Name != "a" || made.UID == "" || made.UID == created.UID ||
			made.Spec.Backup == nil || made.Spec.Backup.Name != "once" || ptr.Deref(made.Spec.Backup.Revision, 0) != 81 || made.Labels["etcd_cluster"] != "a" {
			t.Fatalf("made %s (%v)", output, err)
		}
		if output, err := post(t, "{}", path); err == nil || !strings.Contains(output, made.Name) || !strings.Contains(output, "is in progress") {
			t.Errorf("while one is in progress: %v %s", err, output)
		}
		stored, err := restores.Get(t.Context(), made.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stored.Status.Phase = v1beta2.RestorePhaseFailed
		if _, err := restores.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The typed client speaks protobuf, and a source that is named is taken as it is.
	backedUp(t, namespace, "a", "older", 7)
	named := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "older"}}}
	typed, err := clustersIn(namespace).Restore(t.Context(), "a", named, metav1.CreateOptions{})
	if err != nil || typed.Name != "mine" || typed.Spec.Backup.Name != "older" || typed.Spec.Backup.Revision != nil {
		t.Errorf("made %+v %v", typed, err)
	}
	contains(t, mustKubectl(t, "get", "--raw", "/apis/"+v1beta2.SchemeGroupVersion.String()), `"etcdclusters/restore"`)
	contains(t, mustKubectl(t, "get", "--raw", "/openapi/v3/apis/"+v1beta2.SchemeGroupVersion.String()), `/etcdclusters/{name}/restore"`)
}

// TestRestoreHasARightOfItsOwn: the right to create the subresource is enough, and neither
// that to back up nor that to write clusters is.
func TestRestoreHasARightOfItsOwn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	backedUp(t, namespace, "a", "once", 81)
	path := raw(namespace, "a", "restore")
	for _, may := range []string{"backup", "restore"} {
		mustKubectl(t, "-n", namespace, "create", "role", may, "--verb=create", "--resource=etcdclusters.etcd.database.coreos.com/"+may)
		mustKubectl(t, "-n", namespace, "create", "rolebinding", may, "--role="+may, "--user="+may+"-"+namespace)
	}
	grant(t, namespace, "writer-"+namespace, "get", "list", "update", "patch", "create", "delete")
	for _, user := range []string{"backup-", "writer-", "nobody-"} {
		contains(t, rejectedKubectl(t, "{}", "create", "--raw", path, "-f", "-", "--as="+user+namespace), "orbidden")
	}

	// What it creates goes through the policies for EtcdRestores.
	policy(t, namespace, "etcdrestores")
	eventually(t, func(ctx context.Context) error { // the policy is read by a watch
		output, err := env.kubectlWith(ctx, nil, `{"metadata":{"labels":{"tape":"yes"}}}`, "create", "--raw", path+"?dryRun=All", "-f", "-")
		if err == nil || !strings.Contains(output, "no tapes here") {
			return errorf("a policy for EtcdRestores is not asked: %v %s", err, output)
		}
		return nil
	})
	restores := env.etcd.EtcdV1beta2().EtcdRestores(namespace)
	if list, err := restores.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Fatalf("a rejected request has left %+v (%v)", list, err)
	}
	user := "restore-" + namespace
	if output, err := env.kubectlWith(t.Context(), nil, "{}", "create", "--raw", path, "-f", "-", "--as="+user); err != nil {
		t.Fatalf("%v %s", err, output)
	}
	for _, args := range [][]string{
		{"get", "etcdclusters"}, {"get", "etcdrestores"}, {"get", "secrets"}, {"delete", "etcdrestores", "--all"},
		{"get", "--raw", raw(namespace, "a", "health")},
	} {
		contains(t, rejectedKubectl(t, "", append(args, "-n", namespace, "--as="+user)...), "orbidden")
	}
	contains(t, rejectedKubectl(t, "{}", "create", "--raw", raw(namespace, "a", "backup"), "-f", "-", "--as="+user), "orbidden")
}
