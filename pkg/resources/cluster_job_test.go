// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestJobOfClusterHasLabelsBesideItsOwnSecretsOnly: labels and annotations of spec.backup.job, by which a webhook adds containers,
// stay while the pod uses only Secrets and ServiceAccounts that spec.backup names. All else of the job stays.
func TestJobOfClusterHasLabelsBesideItsOwnSecretsOnly(t *testing.T) {
	t.Parallel()
	s3 := func(secret, ca string) v1beta2.BackupSource {
		return v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/key", AWSSecret: secret, CASecret: ca}}
	}
	at := func(source v1beta2.BackupSource) v1beta2.BackupSpec {
		return v1beta2.BackupSpec{StorageType: v1beta2.BackupStorageTypeS3, BackupSource: source}
	}
	edited := func(edit func(*v1beta2.BackupSpec)) v1beta2.BackupSpec {
		spec := at(s3("aws", "ca"))
		edit(&spec)
		return spec
	}
	cluster := &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Backup: &v1beta2.ClusterBackupPolicy{
		StorageType: v1beta2.BackupStorageTypeS3, BackupSource: s3("aws", "ca"), ServiceAccountName: "mover",
		Encryption: &v1beta2.BackupEncryption{AgeRecipientsSecret: "recipients"},
		Job: &v1beta2.JobPolicy{
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"},
			Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}}, PriorityClassName: "low",
		},
	}}}
	for name, test := range map[string]struct {
		spec    v1beta2.BackupSpec
		further []string
		keeps   bool
	}{
		"the location of the cluster":       {at(s3("aws", "ca")), nil, true},
		"another path, without a CA":        {edited(func(s *v1beta2.BackupSpec) { s.S3.Path, s.S3.CASecret = "other/key", "" }), nil, true},
		"a location without Secrets":        {at(s3("", "")), nil, true},
		"the ServiceAccount of the cluster": {edited(func(s *v1beta2.BackupSpec) { s.ServiceAccountName = "mover" }), nil, true},
		"a further Secret of the cluster":   {at(s3("aws", "")), []string{"recipients"}, true},
		"a PVC": {v1beta2.BackupSpec{
			StorageType:  v1beta2.BackupStorageTypePersistentVolumeClaim,
			BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "c"}},
		}, nil, true},
		"another Secret of the store": {at(s3("theirs", "ca")), nil, false},
		"another CA":                  {at(s3("aws", "theirs")), nil, false},
		"another ServiceAccount":      {edited(func(s *v1beta2.BackupSpec) { s.ServiceAccountName = "theirs" }), nil, false},
		"other recipients": {edited(func(s *v1beta2.BackupSpec) {
			s.Encryption = &v1beta2.BackupEncryption{AgeRecipientsSecret: "theirs"}
		}), nil, false},
		"identities":                 {at(s3("aws", "ca")), []string{"identities"}, false},
		"a location that is invalid": {edited(func(s *v1beta2.BackupSpec) { s.S3.Path = "" }), nil, false},
	} {
		got := JobOfCluster(cluster, &test.spec, test.further...)
		if keeps := len(got.Labels) > 0 && len(got.Annotations) > 0; keeps != test.keeps || keeps != (len(got.Labels)+len(got.Annotations) > 0) {
			t.Errorf("%s: labels %v and annotations %v; to be kept: %t", name, got.Labels, got.Annotations, test.keeps)
		}
		if got.PriorityClassName != "low" || len(got.Env) == 0 {
			t.Errorf("%s: the job lacks its priority or its proxy: %+v", name, got)
		}
	}
	if job := cluster.Spec.Backup.Job; len(job.Labels) == 0 || len(job.Annotations) == 0 {
		t.Error("the cluster itself was changed")
	}
	for name, c := range map[string]*v1beta2.EtcdCluster{"no cluster": nil, "no spec.backup": {}, "no job": {Spec: v1beta2.ClusterSpec{Backup: &v1beta2.ClusterBackupPolicy{}}}} {
		if got := JobOfCluster(c, &v1beta2.BackupSpec{}); got != nil {
			t.Errorf("%s: the job is %+v", name, got)
		}
	}
}
