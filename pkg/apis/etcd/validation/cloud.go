// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// cloudDomains are the domains in which a cloud itself answers for a kind of store. Below
// them no customer can run a server that reads what it is sent.
var cloudDomains = map[v1beta2.BackupStorageType][]string{
	v1beta2.BackupStorageTypeGCS: {"googleapis.com"},
	v1beta2.BackupStorageTypeABS: {
		"blob.core.windows.net", "blob.core.chinacloudapi.cn", "blob.core.usgovcloudapi.net", "blob.storage.azure.net",
	},
}

// IsCloudEndpoint is true if an endpoint of a store leads to the cloud itself over https, so
// that a token for the cloud may be sent there. No endpoint means the cloud.
func IsCloudEndpoint(storageType v1beta2.BackupStorageType, endpoint string) bool {
	if endpoint == "" {
		return true
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "https" || (parsed.Port() != "" && parsed.Port() != "443") {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(parsed.Hostname()), ".")
	for _, domain := range cloudDomains[storageType] {
		if strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// validateTokenEndpoint keeps the token of a workload from an endpoint of the author's
// choice, which could use it in place of the workload.
func validateTokenEndpoint(storageType v1beta2.BackupStorageType, endpoint string, path *field.Path, secret string) field.ErrorList {
	if IsCloudEndpoint(storageType, endpoint) {
		return nil
	}
	return field.ErrorList{invalid(path, endpoint,
		"must be https:// and a host below %s without %s, because the token of the workload is sent to it; name a Secret in %s for any other store",
		strings.Join(cloudDomains[storageType], " or "), secret, secret)}
}
