// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// defaultAccount is the ServiceAccount of a pod that names none.
const defaultAccount = "default"

// identityNeeds returns the need of a store that is reached through a proxy and without a key, as the identity of the
// ServiceAccount or of the node. With a CA of its author, the proxy may take the place of the cloud. It then obtains tokens:
// those that Google and Azure accept, and the one that AWS exchanges for keys. A ServiceAccount that is named has a need of its own.
func identityNeeds(path *field.Path, source v1beta2.BackupSource, account string, proxied bool) []Need {
	if account != "" || !proxied {
		return nil
	}
	var trusts *field.Path
	switch {
	case source.S3 != nil && source.S3.AWSSecret == "" && source.S3.InsecureSkipTLSVerify:
		trusts = path.Child("s3", "insecureSkipTLSVerify")
	case source.S3 != nil && source.S3.AWSSecret == "" && source.S3.CASecret != "":
		trusts = path.Child("s3", "caSecret")
	case source.GCS != nil && source.GCS.GCPSecret == "" && source.GCS.CASecret != "":
		trusts = path.Child("gcs", "caSecret")
	// absSecret may lack storage-key. The agent sends a token of Azure to no other endpoint.
	case source.ABS != nil && source.ABS.CASecret != "" && v1beta2.IsCloudEndpoint(v1beta2.BackupStorageTypeABS, source.ABS.Endpoint):
		trusts = path.Child("abs", "caSecret")
	default:
		return nil
	}
	need := accountNeed(trusts, defaultAccount)
	need.What = fmt.Sprintf("a proxy that this field trusts obtains tokens of ServiceAccount %q or of the node", defaultAccount)
	return []Need{need}
}

// hasProxy is true of a Job that may reach a store through a proxy.
func hasProxy(job *v1beta2.JobPolicy) bool { return job != nil && len(job.Env) > 0 }

// placeOf is the source of a restore as that of a backup.
func placeOf(source v1beta2.RestoreSource) v1beta2.BackupSource {
	return v1beta2.BackupSource{
		S3: (*v1beta2.S3BackupSource)(source.S3), ABS: source.ABS, GCS: source.GCS, OSS: source.OSS, PersistentVolumeClaim: source.PersistentVolumeClaim,
	}
}
