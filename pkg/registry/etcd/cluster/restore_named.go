// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// checkNamedBackup rejects a request whose EtcdBackup has no backup that the cluster could take. An EtcdRestore may be
// applied before its EtcdBackup, and then waits. A request to the subresource is about what exists now, and its dry run
// promises that the restore can begin.
func (r *RestoreREST) checkNamedBackup(ctx context.Context, cluster *v1beta2.EtcdCluster, spec *v1beta2.RestoreSpec) (field.ErrorList, error) {
	list, err := listBackups(ctx, r.backups)
	if err != nil {
		return nil, err
	}
	path, named := field.NewPath("spec", "backup"), spec.Backup
	i := slices.IndexFunc(list.Items, func(b v1beta2.EtcdBackup) bool { return b.Name == named.Name })
	if i < 0 {
		return field.ErrorList{field.Invalid(path.Child("name"), named.Name, fmt.Sprintf(
			"the EtcdBackup does not exist; name another EtcdBackup: kubectl -n %s get etcdbackups", cluster.Namespace))}, nil
	}
	b := &list.Items[i]
	uri, _, version := resources.BackupOfRevision(b, named.Revision, cluster, time.Now())
	switch {
	case uri == "" && named.Revision == nil:
		return field.ErrorList{field.Invalid(path.Child("name"), named.Name, "the EtcdBackup has no backup that succeeded; see its status, or name another EtcdBackup")}, nil
	case uri == "":
		return field.ErrorList{field.Invalid(path.Child("revision"), *named.Revision, fmt.Sprintf(
			"EtcdBackup %s has no backup of this revision that succeeded; its status.history lists those that it has", b.Name))}, nil
	case spec.Decryption == nil && manifest.IsNamedEncrypted(uri):
		return field.ErrorList{encryptedBackup("the backup of", b.Name)}, nil
	}
	switch from := resources.SourceOf(b); {
	case from != cluster.Name:
		warning.AddWarning(ctx, "", fmt.Sprintf("EtcdBackup %s is a backup of %s. The restore replaces the data of EtcdCluster %s with that.", b.Name, from, cluster.Name))
	case b.Status.LastSuccessDate.Before(&cluster.CreationTimestamp):
		warning.AddWarning(ctx, "", fmt.Sprintf("EtcdBackup %s has stored no backup since EtcdCluster %s was created. It holds data of an earlier EtcdCluster of that name.", b.Name, cluster.Name))
	}
	return unfitVersion(cluster, b.Name, version), nil
}

// unfitVersion rejects a backup with which the version of the cluster does not start. Not every backup says its version;
// the EtcdRestore checks the snapshot before it changes anything.
func unfitVersion(cluster *v1beta2.EtcdCluster, name, version string) field.ErrorList {
	if err := manifest.CheckVersion(resources.NormalizeVersion(version), resources.Version(cluster)); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "backup", "name"), name, err.Error())}
	}
	return nil
}

// encryptedBackup is the error of a request that names no identities for an encrypted backup.
func encryptedBackup(which, name string) *field.Error {
	return field.Required(field.NewPath("spec", "decryption"), fmt.Sprintf(
		"%s EtcdBackup %s is encrypted; set spec.decryption.ageIdentitiesSecret to the Secret with the identities", which, name))
}
