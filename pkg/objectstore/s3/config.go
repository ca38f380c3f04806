// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	// The files of the secret, in the form of the AWS tools.
	credentialsFile = "credentials"
	configFile      = "config"
	profile         = "default"
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
	// CredentialsDir holds the files credentials and config, of which the latter may
	// be missing. Empty: the identity of the workload.
	CredentialsDir string
	Transport      *http.Transport
}

// New returns a store. It makes no request.
func New(ctx context.Context, c Config) (*Store, error) {
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(httpClient(c.Transport)),
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = maxAttempts
				o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(stallIsFinal)}, o.Retryables...)
			})
		}),
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.CredentialsDir != "" {
		files, err := secretFiles(c.CredentialsDir)
		if err != nil {
			return nil, err
		}
		options = append(options, files...)
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		// What the parser says may quote the file.
		return nil, fmt.Errorf("%w: %s and %s of the secret must have the form of the AWS tools, with a profile %s",
			objectstore.ErrCredentials, credentialsFile, configFile, profile)
	}
	if loaded.Region == "" {
		loaded.Region = defaultRegion
	}
	client := s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.UsePathStyle = c.ForcePathStyle
		o.DisableLogOutputChecksumValidationSkipped = true
		if c.Endpoint != "" {
			endpoint := c.Endpoint
			if !strings.Contains(endpoint, "://") {
				endpoint = "https://" + endpoint
			}
			o.BaseEndpoint = aws.String(endpoint)
			// Many stores that speak S3 refuse the checksums that AWS has added.
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	})
	return &Store{client: client, bucket: c.Bucket, encryption: c.ServerSideEncryption}, nil
}

// stallIsFinal keeps what has stalled from being tried again, until it stalls again.
func stallIsFinal(err error) aws.Ternary {
	if errors.Is(err, objectstore.ErrStalled) {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}

// httpClient is the SDK's own kind of client, to which it adds the authorities that
// AWS_CA_BUNDLE names; it refuses to with any other.
func httpClient(transport *http.Transport) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.Proxy, t.DialContext, t.Protocols, t.ForceAttemptHTTP2 = transport.Proxy, transport.DialContext, transport.Protocols, false
		t.TLSClientConfig, t.TLSHandshakeTimeout = transport.TLSClientConfig.Clone(), transport.TLSHandshakeTimeout
		t.WriteBufferSize, t.ReadBufferSize = transport.WriteBufferSize, transport.ReadBufferSize
		t.IdleConnTimeout, t.MaxIdleConnsPerHost = transport.IdleConnTimeout, transport.MaxIdleConnsPerHost
	})
}

// secretFiles makes the files of the secret the only ones that are read.
func secretFiles(dir string) ([]func(*config.LoadOptions) error, error) {
	credentials := filepath.Join(dir, credentialsFile)
	if _, err := os.Stat(credentials); err != nil {
		return nil, fmt.Errorf("%w: the secret must have the entry %s: %w", objectstore.ErrCredentials, credentialsFile, err)
	}
	configs := []string{filepath.Join(dir, configFile)}
	if _, err := os.Stat(configs[0]); errors.Is(err, fs.ErrNotExist) {
		configs = []string{}
	}
	return []func(*config.LoadOptions) error{
		config.WithSharedConfigProfile(profile),
		config.WithSharedCredentialsFiles([]string{credentials}),
		config.WithSharedConfigFiles(configs),
	}, nil
}
