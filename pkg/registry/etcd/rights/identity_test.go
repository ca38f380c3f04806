// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestNeedsOfAnIdentity: with a proxy and a CA, the author of an object could obtain tokens of the identity of the pod.
func TestNeedsOfAnIdentity(t *testing.T) {
	t.Parallel()
	proxy := []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}}
	proxied, direct := &v1beta2.JobPolicy{Env: proxy}, &v1beta2.JobPolicy{PriorityClassName: "low"}
	gcs := v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/k", CASecret: "ca"}}
	const asked = "secrets/ca serviceaccounts/default"
	for _, test := range []struct {
		name    string
		source  v1beta2.BackupSource
		account string
		job     *v1beta2.JobPolicy
		// restore is what an EtcdRestore needs, which may have the job of the cluster. All others need want.
		want, restore string
	}{
		{"GCS behind a proxy", gcs, "", proxied, asked, asked},
		{"GCS behind no proxy", gcs, "", direct, "secrets/ca", "secrets/ca"},
		{"GCS without a job", gcs, "", nil, "secrets/ca", asked},
		{"GCS behind a proxy, as a ServiceAccount", gcs, "mover", proxied, "secrets/ca serviceaccounts/mover", "secrets/ca serviceaccounts/mover"},
		{"GCS behind a proxy, with public CAs", v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/k"}}, "", proxied, "", ""},
		{"GCS behind a proxy, with a key", v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/k", CASecret: "ca", GCPSecret: "key"}}, "", proxied, "secrets/ca secrets/key", "secrets/ca secrets/key"},
		{"ABS behind a proxy", v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "b/k", CASecret: "ca"}}, "", proxied, asked, asked},
		{
			"ABS behind a proxy, with a Secret that may have no key", v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "b/k", CASecret: "ca", ABSSecret: "account"}}, "", proxied,
			"secrets/account " + asked, "secrets/account " + asked,
		},
		{
			"an emulator of ABS behind a proxy", v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "b/k", CASecret: "ca", ABSSecret: "account", Endpoint: "https://store:10000"}}, "", proxied,
			"secrets/account secrets/ca", "secrets/account secrets/ca",
		},
		{"S3 behind a proxy", v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", CASecret: "ca"}}, "", proxied, asked, asked},
		{"S3 behind a proxy with any certificate", v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", InsecureSkipTLSVerify: true}}, "", proxied, "serviceaccounts/default", "serviceaccounts/default"},
		{"S3 behind a proxy, with keys", v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", CASecret: "ca", AWSSecret: "key"}}, "", proxied, "secrets/ca secrets/key", "secrets/ca secrets/key"},
		{"OSS behind a proxy", v1beta2.BackupSource{OSS: &v1beta2.OSSSource{Path: "b/k", CASecret: "ca", OSSSecret: "key"}}, "", proxied, "secrets/ca secrets/key", "secrets/ca secrets/key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			place := v1beta2.RestoreSource{S3: (*v1beta2.S3RestoreSource)(test.source.S3), ABS: test.source.ABS, GCS: test.source.GCS, OSS: test.source.OSS}
			backup := &v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{BackupSource: test.source, ServiceAccountName: test.account, Job: test.job}}
			cluster := &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Backup: &v1beta2.ClusterBackupPolicy{
				BackupSource: test.source, ServiceAccountName: test.account, Job: test.job,
			}}}
			recovered := &v1beta2.EtcdCluster{Status: v1beta2.ClusterStatus{Recovery: &v1beta2.RecoveryStatus{Source: v1beta2.RecoverySource{
				Backup: &v1beta2.BackupPlace{RestoreSource: place, ServiceAccountName: test.account, Env: test.job.OnlySecretUse().Env},
			}}}}
			for _, obj := range []runtime.Object{backup, cluster, recovered} {
				if got := names(NeedsOf(obj, nil)); got != test.want {
					t.Errorf("%T needs %q, want %q", obj, got, test.want)
				}
			}
			restored := &v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{RestoreSource: place, ServiceAccountName: test.account, Job: test.job}}
			// Its location needs the right to create EtcdBackups.
			if got, want := names(NeedsOf(restored, nil)), strings.TrimSpace("etcdbackups/ "+test.restore); got != want {
				t.Errorf("an EtcdRestore needs %q, want %q", got, want)
			}
		})
	}
	public := &v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{BackupSource: v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/k"}}, Job: proxied}}
	trusting := public.DeepCopy()
	trusting.Spec.GCS.CASecret = "ca"
	if got := names(NeedsOf(trusting, public)); got != asked {
		t.Errorf("a CA that is added needs %q, want %q", got, asked)
	}
	unproxied := trusting.DeepCopy()
	unproxied.Spec.Job = nil
	if got := names(NeedsOf(trusting, unproxied)); got != asked {
		t.Errorf("a proxy that is added needs %q, want %q", got, asked)
	}
	if got := names(NeedsOf(trusting, trusting.DeepCopy())); got != "" {
		t.Errorf("an unchanged backup needs %q", got)
	}
}
