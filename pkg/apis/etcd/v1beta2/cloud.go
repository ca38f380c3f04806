// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"net/url"
	"strings"
)

// cloudDomains are the domains in which a cloud itself responds for a kind of store. Below
// them no customer can run a server that reads what it is sent.
var cloudDomains = map[BackupStorageType][]string{
	BackupStorageTypeGCS: {"googleapis.com"},
	BackupStorageTypeABS: {
		"blob.core.windows.net", "blob.core.chinacloudapi.cn", "blob.core.usgovcloudapi.net", "blob.storage.azure.net",
	},
	BackupStorageTypeS3:  {"amazonaws.com", "amazonaws.com.cn"},
	BackupStorageTypeOSS: {"aliyuncs.com"},
}

// IsCloudEndpoint is true if an endpoint of a store leads to the cloud itself over https, so
// that a token for the cloud may be sent there. No endpoint means the cloud.
func IsCloudEndpoint(storageType BackupStorageType, endpoint string) bool {
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

// CloudDomains returns the domains of the cloud whose store this is, for a reader.
func CloudDomains(storageType BackupStorageType) string {
	return strings.Join(cloudDomains[storageType], " or ")
}

// isCloud is true if a backup goes to a store that a cloud itself runs.
func isCloud(storageType BackupStorageType, source *BackupSource) bool {
	endpoint := ""
	switch {
	case storageType == BackupStorageTypeS3 && source.S3 != nil:
		endpoint = source.S3.Endpoint
	case storageType == BackupStorageTypeGCS && source.GCS != nil:
		endpoint = source.GCS.Endpoint
	case storageType == BackupStorageTypeABS && source.ABS != nil:
		endpoint = source.ABS.Endpoint
	case storageType == BackupStorageTypeOSS && source.OSS != nil:
		endpoint = source.OSS.Endpoint
	default:
		return false
	}
	return IsCloudEndpoint(storageType, endpoint)
}
