// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// holding returns a guard whose user has these rights beside the right to its request, each
// as "verb resource name".
func holding(held ...string) rights.Guard {
	return rights.Guard{Checker: rights.Checker{Authorizer: authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if slices.Contains(held, strings.TrimSpace(a.GetVerb()+" "+a.GetResource()+" "+a.GetName())) {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})}}
}

func asUser(t *testing.T, subresource string) context.Context {
	t.Helper()
	return request.WithUser(registrytest.Context(t.Context(), ns, "etcdclusters", subresource), &user.DefaultInfo{Name: "alice"})
}

var intoS3 = v1beta2.BackupSpec{
	StorageType:  v1beta2.BackupStorageTypeS3,
	BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "mine/all", AWSSecret: "mine", Endpoint: "https://s3.example.com"}},
}

func TestBackupChoosesOnlyTheMoment(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	cluster := destined("a")
	cluster.Spec.Backup.Encryption = &v1beta2.BackupEncryption{AgeRecipientsSecret: "recipients"}
	cluster.Spec.Backup.Job = &v1beta2.JobPolicy{
		Labels:           map[string]string{"team": "data"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}, Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}},
	}
	intoGCS := v1beta2.BackupSpec{StorageType: v1beta2.BackupStorageTypeGCS, BackupSource: v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "mine/all", CASecret: "mine"}}}
	cluster.Spec.Backup.ServiceAccountName, cluster.Spec.Backup.Verify = "mover", v1beta2.VerificationHash
	create(t, storage, cluster)
	annotated := v1beta2.BackupSpec{Job: cluster.Spec.Backup.Job.DeepCopy()}
	annotated.Job.Annotations = map[string]string{"a": "b"}
	for _, test := range []struct {
		name  string
		held  []string
		asked v1beta2.EtcdBackup
		says  []string
	}{
		{"empty", nil, v1beta2.EtcdBackup{}, nil},
		{"a name, labels and the cluster itself", nil, v1beta2.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: map[string]string{"why": "upgrade"}, Annotations: map[string]string{"note": "n"}},
			Spec:       v1beta2.BackupSpec{EtcdCluster: &v1beta2.EtcdClusterRef{Name: "a"}},
		}, nil},
		{"a destination", nil, v1beta2.EtcdBackup{Spec: intoS3}, []string{"spec.storageType, spec.s3", "create etcdbackups"}},
		{"another verification", nil, v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{Verify: v1beta2.VerificationHash}}, []string{"spec.verify"}},
		{"another compression", nil, v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{Compression: v1beta2.CompressionNone}}, []string{"spec.compression"}},
		{"a service account", nil, v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{ServiceAccountName: "mover"}}, []string{"spec.serviceAccountName"}},
		{"recipients", nil, v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{Encryption: &v1beta2.BackupEncryption{AgeRecipientsSecret: "mine"}}}, []string{"spec.encryption"}},
		{"a policy", nil, v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{BackupPolicy: &v1beta2.BackupPolicy{MaxBackups: 1}}}, []string{"spec.backupPolicy"}},
		{"a note of the controller", nil, v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{"etcd.database.coreos.com/pre-restore-backup-of": "r"},
		}}, []string{"metadata.annotations[etcd.database.coreos.com/pre-restore-backup-of]"}},
		{"a destination, with the right to create backups only", []string{"create etcdbackups"}, v1beta2.EtcdBackup{Spec: intoS3}, []string{`spec.s3.awsSecret`, `Secret "mine"`}},
		{"a destination, with both rights and the labels of the cluster", []string{"create etcdbackups", "use secrets mine"}, v1beta2.EtcdBackup{Spec: intoS3}, nil},
		{
			"a destination with a CA behind the proxy of the cluster", []string{"create etcdbackups", "use secrets mine"}, v1beta2.EtcdBackup{Spec: intoGCS},
			[]string{"spec.gcs.caSecret", `ServiceAccount "default"`},
		},
		{
			"a destination with a CA behind the proxy of the cluster, with the right",
			[]string{"create etcdbackups", "use secrets mine", "use serviceaccounts default"}, v1beta2.EtcdBackup{Spec: intoGCS}, nil,
		},
		{"a proxy, with the right to create backups only", []string{"create etcdbackups"}, v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{
			Job: &v1beta2.JobPolicy{Env: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "http://mine"}}},
		}}, []string{`field names: spec.job of the request: a pod mounts Secret "recipients"`, "or remove spec.job from the request"}},
		{"a proxy and a service account", []string{"create etcdbackups", "use serviceaccounts mine"}, v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{
			Verify: v1beta2.VerificationChecksum, ServiceAccountName: "mine", Job: &v1beta2.JobPolicy{Env: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "http://mine"}}},
		}}, []string{`field names: spec.serviceAccountName, spec.job of the request: a pod mounts Secret "recipients"`, "or remove spec.serviceAccountName, spec.job from the request"}},
		{"a service account, without the labels of the cluster", []string{"create etcdbackups", "use serviceaccounts mine"}, v1beta2.EtcdBackup{
			Spec: v1beta2.BackupSpec{Verify: v1beta2.VerificationHash, ServiceAccountName: "mine"},
		}, []string{`field names: spec.serviceAccountName of the request: a pod mounts Secret "recipients"`}},
		{"an annotation, with the right to create backups only", []string{"create etcdbackups", "use secrets pull"}, v1beta2.EtcdBackup{Spec: annotated}, []string{"spec.job.annotations", "client certificate", "get secrets or use secrets"}},
		{"an annotation, without the right to the Secrets of the cluster", []string{"create etcdbackups", "use secrets pull", "use secrets"}, v1beta2.EtcdBackup{Spec: annotated}, []string{`Secret "recipients"`}},
		{"a verification with the image of etcd, with the right to create backups only", []string{"create etcdbackups"}, v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{
			Verify: v1beta2.VerificationRestore,
		}}, []string{`spec.verify of the request: a pod runs as ServiceAccount "mover"`, "or remove spec.verify from the request"}},
		{"another verification, with the right", []string{"create etcdbackups"}, v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{Verify: v1beta2.VerificationHash}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			storage.Backup.guard = holding(test.held...)
			_, err := storage.Backup.Create(asUser(t, "backup"), "a", &test.asked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if len(test.says) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !apierrors.IsForbidden(err) {
				t.Fatalf("got %v, want Forbidden", err)
			}
			for _, says := range test.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
		})
	}
}

// TestBackupKeepsWhatIsGiven: the destination comes from the cluster, all that the request
// says stays, also where it says what is the default of the API.
func TestBackupKeepsWhatIsGiven(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	cluster := destined("a")
	cluster.Spec.Backup.ServiceAccountName = "of-the-cluster"
	create(t, storage, cluster)
	for _, test := range []struct {
		name           string
		received, want v1beta2.BackupSpec
	}{
		{"nothing", v1beta2.BackupSpec{}, v1beta2.BackupSpec{Compression: v1beta2.CompressionZstd, Verify: v1beta2.VerificationRestore, ServiceAccountName: "of-the-cluster"}},
		{
			"everything",
			v1beta2.BackupSpec{Compression: v1beta2.CompressionNone, Verify: v1beta2.VerificationHash, ServiceAccountName: "mover"},
			v1beta2.BackupSpec{Compression: v1beta2.CompressionNone, Verify: v1beta2.VerificationHash, ServiceAccountName: "mover"},
		},
		{
			"verification",
			v1beta2.BackupSpec{Verify: v1beta2.VerificationHash},
			v1beta2.BackupSpec{Compression: v1beta2.CompressionZstd, Verify: v1beta2.VerificationHash, ServiceAccountName: "of-the-cluster"},
		},
	} {
		t.Run(test.name, func(t *testing.T) { // not in parallel: requests for one cluster exclude each other
			asked := &v1beta2.EtcdBackup{Spec: test.received}
			ctx := WithReceived(asUser(t, "backup"), asked.DeepCopy())
			v1beta2.SetObjectDefaults_EtcdBackup(asked) // as the server decodes it
			obj, err := storage.Backup.Create(ctx, "a", asked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				t.Fatal(err)
			}
			spec := obj.(*v1beta2.EtcdBackup).Spec
			if spec.Compression != test.want.Compression || spec.Verify != test.want.Verify || spec.ServiceAccountName != test.want.ServiceAccountName {
				t.Errorf("made %+v, want %+v", spec, test.want)
			}
		})
	}
}

func TestRestoreChoosesOnlyTheMoment(t *testing.T) {
	t.Parallel()
	storage, backups, _ := withRestores(t)
	a := create(t, storage, valid("a"))
	backedUp(t, backups, a, "good", time.Minute)
	backedUp(t, backups, a, "older", time.Second)
	report(t, storage, backups, "a")
	older := v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "older"}}
	for _, test := range []struct {
		name  string
		held  []string
		asked v1beta2.EtcdRestore
		says  []string
	}{
		{"empty", nil, v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"why": "accident"}}}, nil},
		{"another backup", nil, v1beta2.EtcdRestore{Spec: older}, []string{"spec.backup", "create etcdrestores"}},
		{"a name", nil, v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, []string{"metadata.name"}},
		{"another revision bump", nil, v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{RevisionBump: ptr.To[int64](0)}}, []string{"spec.revisionBump"}},
		{"another backup, with the right", []string{"create etcdrestores"}, v1beta2.EtcdRestore{Spec: older}, nil},
		{
			"identities, with the right to create restores only", []string{"create etcdrestores"},
			v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{Backup: older.Backup, Decryption: &v1beta2.BackupDecryption{AgeIdentitiesSecret: "age"}}},
			[]string{"spec.decryption.ageIdentitiesSecret"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			storage.Restore.guard = holding(test.held...)
			_, err := storage.Restore.Create(asUser(t, "restore"), "a", &test.asked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if len(test.says) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			for _, says := range test.says {
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want Forbidden that says %q", err, says)
				}
			}
		})
	}
}

// TestClusterNamesWhatItsAuthorMayUse: the server checks the right to a Secret when a request
// names it, and not when another user changes something else.
func TestClusterNamesWhatItsAuthorMayUse(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	clusters := *storage.EtcdCluster
	clusters.Guard = holding("use secrets mine")
	ctx := asUser(t, "")
	named := func(name, secret string) *v1beta2.EtcdCluster {
		cluster := valid(name)
		cluster.Spec.Backup = &v1beta2.ClusterBackupPolicy{StorageType: intoS3.StorageType, BackupSource: *intoS3.BackupSource.DeepCopy()}
		cluster.Spec.Backup.S3.AWSSecret = secret
		return cluster
	}
	if _, err := clusters.Create(ctx, named("a", "theirs"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.backup.s3.awsSecret") {
		t.Errorf("a Secret that the user may not use: %v", err)
	}
	obj, err := clusters.Create(ctx, named("b", "mine"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clusters.Guard = holding()
	update := func(edit func(*v1beta2.EtcdCluster)) error {
		change := obj.DeepCopyObject().(*v1beta2.EtcdCluster)
		change.ResourceVersion = ""
		edit(change)
		_, _, err := clusters.Update(ctx, "b", rest.DefaultUpdatedObjectInfo(change), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		return err
	}
	if err := update(func(c *v1beta2.EtcdCluster) { c.Spec.Replicas, c.Spec.Backup.Schedule = ptr.To[int32](5), "@daily" }); err != nil {
		t.Errorf("an update that leaves the Secret where it is: %v", err)
	}
	if err := update(func(c *v1beta2.EtcdCluster) { c.Spec.Backup.S3.Endpoint = "https://evil.example.com" }); !apierrors.IsForbidden(err) {
		t.Errorf("an update that sends the credentials elsewhere: %v", err)
	}
}
