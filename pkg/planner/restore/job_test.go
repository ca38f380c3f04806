// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestJobOfARestore: the restore's own job comes first, then that of the EtcdBackup, then that
// of the cluster. Proxies reach the container that fetches the data, too. With an EtcdBackup, which names the Secrets, the
// proxies, labels and annotations are those of the EtcdBackup only. Labels and annotations of a cluster are for Secrets and
// ServiceAccounts that its spec.backup names.
func TestJobOfARestore(t *testing.T) {
	t.Parallel()
	proxy := func(name string) *v1beta2.JobPolicy {
		return &v1beta2.JobPolicy{
			PriorityClassName: "low", Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: name}},
			Labels: map[string]string{"of": name}, Annotations: map[string]string{"of": name},
		}
	}
	ofRestore := func(o *Observed) { o.Restore.Spec.Job = proxy("restore") }
	ofBackup := func(o *Observed) { o.Backup.Spec.Job = proxy("backup") }
	ofCluster := func(o *Observed) {
		o.Cluster.Spec.Backup = &v1beta2.ClusterBackupPolicy{
			Job: proxy("cluster"), StorageType: v1beta2.BackupStorageTypeS3,
			BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/of-the-cluster", AWSSecret: "aws"}},
		}
	}
	otherSecret := func(o *Observed) { o.Restore.Spec.S3.AWSSecret = "of-the-restore" }
	account := func(o *Observed) { o.Restore.Spec.ServiceAccountName = "of-the-restore" }
	for name, test := range map[string]struct {
		edits []func(*Observed)
		// want is whose proxy the Job has, labels is whose labels and annotations it has.
		want, labels string
	}{
		"nothing":                          {nil, "", ""},
		"restore":                          {[]func(*Observed){fromBackup(nil), ofRestore, ofBackup, ofCluster}, "backup", "backup"},
		"no proxy":                         {[]func(*Observed){fromBackup(nil), ofRestore, ofCluster}, "", ""},
		"backup":                           {[]func(*Observed){fromBackup(nil), ofBackup, ofCluster}, "backup", "backup"},
		"cluster":                          {[]func(*Observed){fromBackup(nil), ofCluster}, "", ""},
		"store, cluster's":                 {[]func(*Observed){ofCluster}, "cluster", "cluster"},
		"store, cluster's, other Secret":   {[]func(*Observed){ofCluster, otherSecret}, "cluster", ""},
		"store, cluster's, ServiceAccount": {[]func(*Observed){ofCluster, account}, "cluster", ""},
		"store, cluster's, identities":     {[]func(*Observed){ofCluster, decrypted}, "cluster", ""},
		"store, its own":                   {[]func(*Observed){ofCluster, ofRestore}, "restore", "restore"},
		"store, its own, other Secret":     {[]func(*Observed){ofCluster, ofRestore, otherSecret, account}, "restore", "restore"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observed(test.edits...)
			check := Decide(o).Check
			if check == nil {
				t.Fatal("the plan has no Job")
			}
			got := ""
			if check.Job != nil && len(check.Job.Env) > 0 {
				got = check.Job.Env[0].Value
			}
			if use := check.Job.OnlySecretUse(); use.Labels["of"] != test.labels || use.Annotations["of"] != test.labels {
				t.Errorf("the pod has labels %v and annotations %v; want those of %q", use.Labels, use.Annotations, test.labels)
			}
			fetched := ""
			if len(check.Place.Env) > 0 {
				fetched = check.Place.Env[0].Value
			}
			if job := check.Job; job == nil && name != "nothing" || job != nil && job.PriorityClassName == "" {
				t.Errorf("the Job has not the priority that is declared: %+v", job)
			}
			if got != test.want || fetched != test.want {
				t.Errorf("the Job is that of %q, the proxy for the data is that of %q; want %q", got, fetched, test.want)
			}
		})
	}
}

// TestJobOfAPreRestoreBackup: its pod mounts the client certificate of the cluster. The labels and annotations of an EtcdBackup of
// another cluster may come from spec.backup.job of that cluster, whose author needed no right to this certificate.
func TestJobOfAPreRestoreBackup(t *testing.T) {
	t.Parallel()
	of := func(name string) func(*Observed) {
		return func(o *Observed) {
			o.Backup.Spec.EtcdCluster = &v1beta2.EtcdClusterRef{Name: name}
			o.Backup.CreationTimestamp = metav1.NewTime(epoch)
		}
	}
	endpoints := func(o *Observed) { o.Backup.Spec.EtcdEndpoints = []string{"http://x:2379"} }
	bare := func(o *Observed) { o.Backup.Spec.Job = nil }
	ofRestore := func(o *Observed) {
		o.Restore.Spec.Job = &v1beta2.JobPolicy{PriorityClassName: "low", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}}
	}
	for name, test := range map[string]struct {
		edits      []func(*Observed)
		keeps, env bool
	}{
		"of the cluster":                            {[]func(*Observed){of("c")}, true, true},
		"of another cluster":                        {[]func(*Observed){of("other")}, false, true},
		"of another cluster, job of the restore":    {[]func(*Observed){of("other"), ofRestore}, false, true},
		"of another cluster, without a job":         {[]func(*Observed){of("other"), bare}, false, false},
		"of an earlier cluster with the name":       {[]func(*Observed){of("c"), madeAt(epoch.Add(time.Second))}, false, true},
		"of the cluster, which a clock dates ahead": {[]func(*Observed){of("c"), madeAt(epoch.AddDate(1, 0, 0))}, true, true},
		"of endpoints":                              {[]func(*Observed){endpoints}, true, true},
	} {
		o := observed(append([]func(*Observed){fromBackup(nil), uncopied, func(o *Observed) {
			o.Backup.Spec.Job = &v1beta2.JobPolicy{
				PriorityClassName: "low", Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "proxy"}},
				Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"},
			}
		}}, test.edits...)...)
		made, wait := o.newPreRestoreBackup()
		if wait != nil {
			t.Fatalf("%s: %+v", name, wait)
		}
		use := made.Spec.Job.OnlySecretUse()
		if (len(use.Labels) > 0) != test.keeps || (len(use.Annotations) > 0) != test.keeps {
			t.Errorf("%s: labels %v and annotations %v; to be kept: %t", name, use.Labels, use.Annotations, test.keeps)
		}
		if (len(use.Env) > 0) != test.env || test.env && made.Spec.Job.PriorityClassName != "low" {
			t.Errorf("%s: proxies %v and the priority of %+v; want a proxy: %t", name, use.Env, made.Spec.Job, test.env)
		}
	}
}
