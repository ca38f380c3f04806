// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// source returns where the backup is, as far as the objects say so, or what the restore
// waits for.
func (o *Observed) source() (*v1beta2.BackupPlace, *Wait) {
	spec := &o.Restore.Spec
	if spec.Backup == nil {
		return &v1beta2.BackupPlace{
			StorageType: spec.BackupStorageType, RestoreSource: *spec.RestoreSource.DeepCopy(), Decryption: spec.Decryption.DeepCopy(),
			ServiceAccountName: spec.ServiceAccountName, Env: o.env(),
		}, nil
	}
	name := spec.Backup.Name
	if o.Backup == nil {
		return nil, &Wait{Reason: ReasonBackupNotFound, Message: fmt.Sprintf("EtcdBackup %s does not exist in this namespace", name)}
	}
	uri, sum, wait := o.chosen()
	if wait != nil {
		return nil, wait
	}
	place := &v1beta2.BackupPlace{
		StorageType: o.Backup.Spec.StorageType, SHA256: sum, Decryption: spec.Decryption.DeepCopy(),
		RestoreSource: restoreSource(&o.Backup.Spec.BackupSource),
		// A service account that may write there may read there.
		ServiceAccountName: cmp.Or(spec.ServiceAccountName, o.Backup.Spec.ServiceAccountName), Env: o.env(),
	}
	store, _, err := agent.RestoreStore(place.StorageType, &place.RestoreSource)
	if err != nil {
		return nil, &Wait{Reason: ReasonInvalidRequest, Message: err.Error()}
	}
	key, err := store.KeyOf(uri)
	if err != nil {
		return nil, &Wait{Reason: ReasonInvalidRequest, Message: fmt.Sprintf("the spec of EtcdBackup %s was changed after that backup was stored: %v", name, err)}
	}
	return at(place, store.Bucket, key), nil
}

// jobPolicy says where and how the pods of the restore run: what the restore says, else what
// the EtcdBackup says that is restored, else what the cluster says of its backups. What decides where the Secrets of an
// EtcdBackup go is that of this EtcdBackup: its author had to have the right to these Secrets. Labels and annotations of a
// cluster are left out beside Secrets that its author did not name: see JobOfCluster.
func (o *Observed) jobPolicy() *v1beta2.JobPolicy {
	policy := o.chosenPolicy().DeepCopy()
	if policy == nil || o.Restore.Spec.Backup == nil {
		return policy
	}
	var ofBackup *v1beta2.JobPolicy
	if o.Backup != nil {
		ofBackup = o.Backup.Spec.Job
	}
	policy.SetSecretUse(ofBackup)
	return policy
}

func (o *Observed) chosenPolicy() *v1beta2.JobPolicy {
	switch {
	case o.Restore.Spec.Job != nil:
		return o.Restore.Spec.Job
	case o.Restore.Spec.Backup != nil && o.Backup != nil && o.Backup.Spec.Job != nil:
		return o.Backup.Spec.Job
	}
	spec := &o.Restore.Spec
	var identities []string
	if spec.Decryption != nil {
		identities = append(identities, spec.Decryption.AgeIdentitiesSecret)
	}
	return resources.JobOfCluster(o.subject(), &v1beta2.BackupSpec{
		StorageType: spec.BackupStorageType, BackupSource: backupSource(&spec.RestoreSource), ServiceAccountName: spec.ServiceAccountName,
	}, identities...)
}

// preRestoreJob is jobPolicy for a pod that mounts the client certificate of the cluster. The labels and annotations of an
// EtcdBackup may be those of spec.backup.job of its cluster. The author of that cluster needed no right to the certificate of
// another cluster, also not to that of a later one with the same name. So they are left out unless the EtcdBackup is one of
// this cluster. That of etcdEndpoints is of no cluster, and its author had the right to every Secret.
func (o *Observed) preRestoreJob() *v1beta2.JobPolicy {
	policy := o.jobPolicy()
	if o.Restore.Spec.Backup == nil || o.Backup == nil || o.Backup.Spec.EtcdCluster == nil {
		return policy
	}
	if o.Backup.Spec.EtcdCluster.Name != o.Cluster.Name || o.Backup.CreationTimestamp.Time.Before(resources.CreatedAt(o.Cluster, o.Now)) {
		return resources.WithoutPrograms(policy)
	}
	return policy
}

// env is that of the container that fetches the data.
func (o *Observed) env() []corev1.EnvVar {
	if policy := o.jobPolicy(); policy != nil {
		return policy.Env
	}
	return nil
}

// chosen returns where the wanted backup is, and its SHA-256 if that is known.
func (o *Observed) chosen() (uri, sum string, wait *Wait) {
	b, revision := o.Backup, o.Restore.Spec.Backup.Revision
	uri, sum, _ = resources.BackupOfRevision(b, revision, o.Cluster, o.Now)
	switch {
	case uri != "":
		return uri, sum, nil
	case revision == nil || *revision == b.Status.EtcdRevision:
		return "", "", &Wait{Reason: ReasonNoBackupYet, Message: fmt.Sprintf("EtcdBackup %s has no good backup yet", b.Name)}
	default:
		return "", "", &Wait{Reason: ReasonBackupNotFound, Message: fmt.Sprintf("EtcdBackup %s has no good backup of revision %d; status.history lists those that it has", b.Name, *revision)}
	}
}

// backupSource is a place to read from as one to write to.
func backupSource(from *v1beta2.RestoreSource) v1beta2.BackupSource {
	from = from.DeepCopy()
	return v1beta2.BackupSource{
		S3: (*v1beta2.S3BackupSource)(from.S3), ABS: from.ABS, GCS: from.GCS, OSS: from.OSS,
		PersistentVolumeClaim: from.PersistentVolumeClaim,
	}
}

// restoreSource is where a backup was stored, as a place to read from.
func restoreSource(from *v1beta2.BackupSource) v1beta2.RestoreSource {
	from = from.DeepCopy()
	return v1beta2.RestoreSource{
		S3: (*v1beta2.S3RestoreSource)(from.S3), ABS: from.ABS, GCS: from.GCS, OSS: from.OSS,
		PersistentVolumeClaim: from.PersistentVolumeClaim,
	}
}

// at returns a place with exactly one key of its store.
func at(place *v1beta2.BackupPlace, bucket, key string) *v1beta2.BackupPlace {
	p := place.DeepCopy()
	path := bucket + "/" + key
	switch {
	case p.S3 != nil:
		p.S3.Path = path
	case p.ABS != nil:
		p.ABS.Path = path
	case p.GCS != nil:
		p.GCS.Path = path
	case p.OSS != nil:
		p.OSS.Path = path
	case p.PersistentVolumeClaim != nil:
		p.PersistentVolumeClaim.Path = key
	}
	return p
}

// verified returns the place of exactly the backup that a Job has found good.
func verified(place *v1beta2.BackupPlace, found *Outcome) (*v1beta2.BackupPlace, *Wait) {
	store, _, err := agent.RestoreStore(place.StorageType, &place.RestoreSource)
	if err != nil {
		return nil, &Wait{Reason: ReasonInvalidRequest, Message: err.Error()}
	}
	exact := at(place, store.Bucket, found.Key)
	exact.SHA256 = found.SHA256
	return exact, nil
}
