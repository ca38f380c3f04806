// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// JobOfCluster returns spec.backup.job of a cluster for a pod that uses the location, the recipients and the ServiceAccount of
// a spec, and further Secrets. Its labels and annotations, by which a webhook may add containers, were checked with the Secrets
// and the ServiceAccount that spec.backup names. A container in a pod with other ones reads them, and their author has not
// allowed it. So the job of such a pod has neither labels nor annotations.
func JobOfCluster(c *v1beta2.EtcdCluster, spec *v1beta2.BackupSpec, further ...string) *v1beta2.JobPolicy {
	if c == nil || c.Spec.Backup == nil || c.Spec.Backup.Job == nil {
		return nil
	}
	policy := c.Spec.Backup
	own, _ := secretsOf(&v1beta2.BackupSpec{StorageType: policy.StorageType, BackupSource: policy.BackupSource, Encryption: policy.Encryption})
	used, known := secretsOf(spec)
	other := func(secret string) bool { return !slices.Contains(own, secret) }
	if account := spec.ServiceAccountName; !known || account != "" && account != policy.ServiceAccountName || slices.ContainsFunc(append(used, further...), other) {
		return WithoutPrograms(policy.Job)
	}
	return policy.Job.DeepCopy()
}

// WithoutPrograms returns a job without the labels and annotations by which a webhook may add containers to its pod.
func WithoutPrograms(job *v1beta2.JobPolicy) *v1beta2.JobPolicy {
	job = job.DeepCopy()
	if job != nil {
		job.Labels, job.Annotations = nil, nil
	}
	return job
}

// secretsOf returns the Secrets of a location and of its recipients. Known is false for a location that is invalid.
func secretsOf(spec *v1beta2.BackupSpec) (secrets []string, known bool) {
	_, mounts, err := agent.BackupStore(spec.StorageType, &spec.BackupSource)
	for _, m := range mounts {
		if m.Secret != "" {
			secrets = append(secrets, m.Secret)
		}
	}
	if spec.Encryption != nil {
		secrets = append(secrets, spec.Encryption.AgeRecipientsSecret)
	}
	return secrets, err == nil
}
