// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// validateTokenEndpoint keeps the token of a workload from an endpoint of the author's
// choice, which could use it in place of the workload.
func validateTokenEndpoint(storageType v1beta2.BackupStorageType, endpoint string, path *field.Path, secret string) field.ErrorList {
	if v1beta2.IsCloudEndpoint(storageType, endpoint) {
		return nil
	}
	return field.ErrorList{invalid(path, endpoint,
		"must be https:// and a host below %s without %s, because the token of the workload is sent to it; name a Secret in %s for any other store",
		v1beta2.CloudDomains(storageType), secret, secret)}
}
