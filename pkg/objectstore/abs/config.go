// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	// The entries of the secret.
	accountFile = "storage-account"
	keyFile     = "storage-key"
	cloudFile   = "cloud"
	maxRetries  = 4
)

// environment is one of Azure's clouds.
type environment struct {
	suffix string
	cloud  cloud.Configuration
}

// environments by the names that Azure's tools have always used.
var environments = map[string]environment{
	"":                       {"blob.core.windows.net", cloud.AzurePublic},
	"AZUREPUBLICCLOUD":       {"blob.core.windows.net", cloud.AzurePublic},
	"AZURECLOUD":             {"blob.core.windows.net", cloud.AzurePublic},
	"AZURECHINACLOUD":        {"blob.core.chinacloudapi.cn", cloud.AzureChina},
	"AZUREUSGOVERNMENTCLOUD": {"blob.core.usgovcloudapi.net", cloud.AzureGovernment},
	"AZUREUSGOVERNMENT":      {"blob.core.usgovcloudapi.net", cloud.AzureGovernment},
}

// Config says which container, and how to reach it.
type Config struct {
	Container string
	// Endpoint replaces https://<account>.blob.<cloud>. One that names the account
	// neither in its host nor in a path, as that of an emulator, gets it as a path.
	Endpoint string
	// CredentialsDir holds the files storage-account, and optionally storage-key and
	// cloud. Without a key the identity of the workload is used.
	CredentialsDir string
	Transport      *http.Transport
}

// New returns a store. It makes no request.
func New(c Config) (*Store, error) {
	secret, err := objectstore.ReadSecret(c.CredentialsDir, []string{accountFile}, keyFile, cloudFile)
	if err != nil {
		return nil, err
	}
	account := secret[accountFile]
	env, ok := environments[strings.ToUpper(secret[cloudFile])]
	if !ok {
		return nil, fmt.Errorf("%w: the secret's %s names no cloud of Azure; use AzurePublicCloud, AzureChinaCloud or AzureUSGovernmentCloud",
			objectstore.ErrCredentials, cloudFile)
	}
	base, err := accountURL(c.Endpoint, account, env.suffix)
	if err != nil {
		return nil, err
	}
	options := azcore.ClientOptions{
		Cloud:     env.cloud,
		Transport: &http.Client{Transport: c.Transport},
		Retry:     policy.RetryOptions{MaxRetries: maxRetries, ShouldRetry: shouldRetry},
		Telemetry: policy.TelemetryOptions{Disabled: true},
	}
	at := base + "/" + c.Container
	var client *container.Client
	if key := secret[keyFile]; key != "" {
		shared, err := container.NewSharedKeyCredential(account, key)
		if err != nil {
			// The cause may quote the key.
			return nil, fmt.Errorf("%w: the secret's %s is no key of Azure, which is Base64", objectstore.ErrCredentials, keyFile)
		}
		client, err = container.NewClientWithSharedKeyCredential(at, shared, &container.ClientOptions{ClientOptions: options})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", objectstore.ErrCredentials, err)
		}
	} else {
		identity, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", objectstore.ErrCredentials, err)
		}
		client, err = container.NewClient(at, identity, &container.ClientOptions{ClientOptions: options})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", objectstore.ErrCredentials, err)
		}
	}
	return &Store{client: client}, nil
}

// shouldRetry is asked after the SDK's own rules for what must not be retried, and
// replaces those for what may. What has stalled is not tried until it stalls again.
func shouldRetry(response *http.Response, err error) bool {
	if err != nil {
		return !errors.Is(err, objectstore.ErrStalled)
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// accountURL is where the containers of an account are.
func accountURL(endpoint, account, suffix string) (string, error) {
	if endpoint == "" {
		return "https://" + account + "." + suffix, nil
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%w: endpoint %q is no URL", objectstore.ErrCredentials, endpoint)
	}
	if strings.Trim(u.Path, "/") == "" && !strings.HasPrefix(u.Host, account+".") {
		u.Path = "/" + account
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}
