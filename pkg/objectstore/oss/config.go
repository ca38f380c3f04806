// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"
	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss/credentials"
	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss/retry"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	// The entries of the secret.
	keyIDFile     = "accessKeyID"
	keySecretFile = "accessKeySecret"
	tokenFile     = "securityToken"
	regionFile    = "region"
	// DefaultEndpoint is used if none is given.
	DefaultEndpoint = "https://oss-cn-hangzhou.aliyuncs.com"
	maxAttempts     = 5
)

// Config says which bucket, and how to reach it.
type Config struct {
	Bucket string
	// Endpoint of the region; a scheme that is missing is https. Default:
	// DefaultEndpoint.
	Endpoint string
	// CredentialsDir holds the files accessKeyID and accessKeySecret, and optionally
	// securityToken and region, for an endpoint that does not name its region.
	CredentialsDir string
	Transport      *http.Transport
}

// retryer keeps what another connection does not heal from being tried again.
type retryer struct{ *retry.Standard }

// IsErrorRetryable implements retry.Retryer.
func (r retryer) IsErrorRetryable(err error) bool {
	return !objectstore.IsFinal(err) && r.Standard.IsErrorRetryable(err)
}

// regionPattern finds the region in the host of an endpoint of Alibaba Cloud.
var regionPattern = regexp.MustCompile(`^(?:vpc100-)?oss-([a-z]+(?:-[a-z0-9]+)+?)(?:-internal)?\.aliyuncs\.com$`)

// New returns a store. It makes no request.
func New(c Config) (*Store, error) {
	secret, err := objectstore.ReadSecret(c.CredentialsDir, []string{keyIDFile, keySecretFile}, tokenFile, regionFile)
	if err != nil {
		return nil, fmt.Errorf("%w (the Secret in oss.ossSecret)", err)
	}
	u, err := address(c.Endpoint)
	if err != nil {
		return nil, err
	}
	config := oss.LoadDefaultConfig().
		WithCredentialsProvider(credentials.NewStaticCredentialsProvider(secret[keyIDFile], secret[keySecretFile], secret[tokenFile])).
		WithEndpoint(u.String()).
		WithDisableUploadCRC64Check(true). // which is done here, with an error of its own
		WithHttpClient(&http.Client{Transport: c.Transport}).
		WithRetryer(retryer{retry.NewStandard(func(o *retry.RetryOptions) { o.MaxAttempts = maxAttempts })})
	if region := regionOf(u.Hostname(), secret[regionFile]); region != "" {
		config = config.WithRegion(region).WithSignatureVersion(oss.SignatureVersionV4)
	} else {
		// The newer signature needs the name of the region, which is unknown. New accounts do not accept the older one.
		config = config.WithSignatureVersion(oss.SignatureVersionV1)
	}
	if net.ParseIP(u.Hostname()) != nil || !strings.Contains(u.Hostname(), ".") || strings.HasSuffix(u.Hostname(), ".svc") {
		config = config.WithUsePathStyle(true)
	}
	return &Store{client: oss.NewClient(config), bucket: c.Bucket}, nil
}

// regionOf returns the region that a host names, else the one that the Secret names: an accelerated endpoint and a domain
// of the user name none.
func regionOf(host, secret string) string {
	if match := regionPattern.FindStringSubmatch(host); match != nil && !strings.HasPrefix(match[1], "accelerate") {
		return match[1]
	}
	return secret
}

// address of an endpoint, or of the default one.
func address(endpoint string) (*url.URL, error) {
	return objectstore.Endpoint(cmp.Or(endpoint, DefaultEndpoint))
}
