// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	// defaultRegion is what stores expect that have no regions.
	defaultRegion = "us-east-1"
	maxAttempts   = 5
)

// Config says which bucket, and how to reach it.
type Config struct {
	Bucket string
	// Endpoint such as https://s3.example.com; a scheme that is missing is https.
	// Empty: AWS.
	Endpoint string
	// Region. Default: that of the secret's config, or us-east-1.
	Region         string
	ForcePathStyle bool
	// ServerSideEncryption, such as AES256 or aws:kms. Empty: what the bucket does.
	ServerSideEncryption string
	// KMSKeyID of the key for aws:kms. Empty: that of the bucket or the account.
	KMSKeyID string
	// StorageClass of the objects that are stored. Empty: the store's default.
	StorageClass string
	// CredentialsDir holds the file credentials, and may hold the file config. Settings
	// other than keys, a role and a region are rejected. Empty: the identity of the
	// workload.
	CredentialsDir string
	Transport      *http.Transport
}

// New returns a store. It makes no request.
func New(ctx context.Context, c Config) (*Store, error) {
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(httpClient(c.Transport)),
		config.WithDefaultRegion(defaultRegion), // before the identity of the workload is resolved: its token is exchanged in a region
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = maxAttempts
				o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(finalErrors)}, o.Retryables...)
			})
		}),
	}
	var source *identity
	if c.CredentialsDir != "" {
		var err error
		if source, err = readIdentity(c.CredentialsDir); err != nil {
			return nil, err
		}
		options = append(options,
			// The SDK reads no file: what a Secret may say was read already.
			config.WithSharedConfigFiles([]string{}), config.WithSharedCredentialsFiles([]string{}),
			config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(source.id, source.secret, source.session)))
		c.Region = cmp.Or(c.Region, source.region)
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		// The cause may quote a file.
		return nil, fmt.Errorf("%w: the environment of the workload holds settings of AWS that cannot be read", objectstore.ErrCredentials)
	}
	if source != nil && source.role != nil {
		loaded.Credentials = assume(loaded, source.role)
	}
	endpoint, err := endpointOf(c)
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.UsePathStyle = c.ForcePathStyle
		o.DisableLogOutputChecksumValidationSkipped = true
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
			// Many stores that speak S3 reject the checksums that AWS has added. They get
			// that of the first version of the protocol, which Object Lock needs too.
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
			if isGoogle(endpoint) {
				leaveEncodingUnsigned(o)
			}
		}
	})
	store := &Store{client: client, bucket: c.Bucket, encryption: c.ServerSideEncryption, kmsKey: c.KMSKeyID, class: c.StorageClass, aws: endpoint == ""}
	if endpoint == "" || strings.HasPrefix(endpoint, "https://") {
		// The checksum of a part is signed, and TLS keeps the rest: its SHA-256 need not be.
		store.summed = append(store.summed, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
	}
	if endpoint != "" {
		store.sent = append(store.sent, s3.WithAPIOptions(smithyhttp.AddContentChecksumMiddleware))
	}
	return store, nil
}

func endpointOf(c Config) (string, error) {
	if c.Endpoint == "" {
		return "", nil
	}
	u, err := objectstore.Endpoint(c.Endpoint)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// assume returns the keys of a role, which are requested with those of a configuration.
func assume(with aws.Config, r *role) aws.CredentialsProvider {
	return aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(with), r.arn, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = cmp.Or(r.session, "etcd-operator")
		o.Duration = r.duration
		if r.externalID != "" {
			o.ExternalID = &r.externalID
		}
	}))
}

// finalErrors keeps what another connection does not heal from being tried again.
func finalErrors(err error) aws.Ternary {
	if objectstore.IsFinal(err) {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}

// httpClient is the SDK's own kind of client, to which it adds the CAs that
// AWS_CA_BUNDLE names; it rejects to with any other.
func httpClient(transport *http.Transport) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.Proxy, t.DialContext, t.Protocols, t.ForceAttemptHTTP2 = transport.Proxy, transport.DialContext, transport.Protocols, false
		t.TLSClientConfig, t.TLSHandshakeTimeout = transport.TLSClientConfig.Clone(), transport.TLSHandshakeTimeout
		t.WriteBufferSize, t.ReadBufferSize = transport.WriteBufferSize, transport.ReadBufferSize
		t.IdleConnTimeout, t.MaxIdleConnsPerHost = transport.IdleConnTimeout, transport.MaxIdleConnsPerHost
	})
}
