// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
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
	// The webhook names the issuer of tokens, else it is that of the public cloud.
	"":                       {"blob.core.windows.net", cloud.Configuration{}},
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
	// neither in its host nor in a path, as that of an emulator, gets it as a path. A
	// scheme that is missing is https.
	Endpoint string
	// EndpointOfCloud is true if Endpoint is Azure's own, so that tokens of Azure may be
	// sent there. No Endpoint is Azure's own.
	EndpointOfCloud bool
	// CredentialsDir holds the files storage-account, and optionally storage-key and
	// cloud. Without a key the identity of the workload is used. Empty: the same, and
	// Endpoint names the account.
	CredentialsDir string
	// AccessTier of the blobs that are stored, such as Cool. Empty: that of the account.
	AccessTier string
	Transport  *http.Transport
}

// accountPattern is looser than Azure's own rule, for emulators.
var accountPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)

// New returns a store. It makes no request.
func New(c Config) (*Store, error) {
	secret, err := readSecret(c)
	if err != nil {
		return nil, err
	}
	account := secret[accountFile]
	if account != "" && !accountPattern.MatchString(account) {
		// It becomes a part of the host that tokens are sent to.
		return nil, fmt.Errorf("%w: the entry %s of the Secret in abs.absSecret is no name of an account, which has letters and digits only",
			objectstore.ErrCredentials, accountFile)
	}
	if secret[keyFile] == "" && c.Endpoint != "" && !c.EndpointOfCloud {
		return nil, fmt.Errorf("%w: abs.endpoint is not a host of Azure, which alone gets the token of the workload; "+
			"store the key of the account as %s in the Secret of abs.absSecret", objectstore.ErrCredentials, keyFile)
	}
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
	client, err := connect(base+"/"+c.Container, account, secret[keyFile], options)
	if err != nil {
		return nil, err
	}
	return &Store{client: client, tier: c.AccessTier}, nil
}

func readSecret(c Config) (map[string]string, error) {
	switch {
	case c.CredentialsDir != "":
		secret, err := objectstore.ReadSecret(c.CredentialsDir, []string{accountFile}, keyFile, cloudFile)
		if err != nil {
			return nil, fmt.Errorf("%w (the Secret in abs.absSecret)", err)
		}
		return secret, nil
	case c.Endpoint == "":
		return nil, fmt.Errorf("%w: without a secret the endpoint must name the account: https://<account>.%s",
			objectstore.ErrCredentials, environments[""].suffix)
	default:
		return map[string]string{}, nil
	}
}

// connect returns the client of a container, with the key of the account, or as the
// identity of the workload.
func connect(at, account, key string, options azcore.ClientOptions) (*container.Client, error) {
	clientOptions := &container.ClientOptions{ClientOptions: options}
	if key == "" {
		identity, err := identityOf(options)
		if err != nil {
			return nil, fmt.Errorf("%w: the workload has no identity at Azure: %w", objectstore.ErrCredentials, err)
		}
		client, err := container.NewClient(at, identity, clientOptions)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", objectstore.ErrCredentials, err)
		}
		return client, nil
	}
	shared, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		// The cause may quote the key.
		return nil, fmt.Errorf("%w: the secret's %s is no key of Azure, which is Base64", objectstore.ErrCredentials, keyFile)
	}
	client, err := container.NewClientWithSharedKeyCredential(at, shared, clientOptions)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", objectstore.ErrCredentials, err)
	}
	return client, nil
}

// Azure's webhook sets these in the pods that have a service account with an identity.
const (
	tokenFileVariable = "AZURE_FEDERATED_TOKEN_FILE"
	clientVariable    = "AZURE_CLIENT_ID"
)

// identityOf returns the identity of the workload: the service account of the pod where the
// webhook has set it, else the identity of the node.
func identityOf(options azcore.ClientOptions) (azcore.TokenCredential, error) {
	if os.Getenv(tokenFileVariable) != "" {
		if os.Getenv(clientVariable) == "" {
			return nil, errors.New("the service account lacks the annotation azure.workload.identity/client-id")
		}
		// No other identity is tried, so that the error names this failure.
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options})
	}
	return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options})
}

// shouldRetry decides after the SDK's own rules for what must not be retried, and
// replaces those for what may. What another connection does not heal is not tried again.
func shouldRetry(response *http.Response, err error) bool {
	if err != nil {
		return !objectstore.IsFinal(err)
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
	u, err := objectstore.Endpoint(endpoint)
	if err != nil {
		return "", err
	}
	if account != "" && strings.Trim(u.Path, "/") == "" && !strings.HasPrefix(u.Host, account+".") {
		u.Path = "/" + account
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}
