// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestJobOfARestore: the restore's own job comes first, then that of the EtcdBackup, then that
// of the cluster. Proxies reach the container that fetches the data, too. With an EtcdBackup, which names the Secrets, the
// proxies, labels and annotations are those of the EtcdBackup only.
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
	ofCluster := func(o *Observed) { o.Cluster.Spec.Backup = &v1beta2.ClusterBackupPolicy{Job: proxy("cluster")} }
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
	}{
		"nothing":          {nil, ""},
		"restore":          {[]func(*Observed){fromBackup(nil), ofRestore, ofBackup, ofCluster}, "backup"},
		"no proxy":         {[]func(*Observed){fromBackup(nil), ofRestore, ofCluster}, ""},
		"backup":           {[]func(*Observed){fromBackup(nil), ofBackup, ofCluster}, "backup"},
		"cluster":          {[]func(*Observed){fromBackup(nil), ofCluster}, ""},
		"store, cluster's": {[]func(*Observed){ofCluster}, "cluster"},
		"store, its own":   {[]func(*Observed){ofCluster, ofRestore}, "restore"},
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
			if use := check.Job.OnlySecretUse(); use.Labels["of"] != test.want || use.Annotations["of"] != test.want {
				t.Errorf("the pod has labels %v and annotations %v; want those of %q", use.Labels, use.Annotations, test.want)
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
