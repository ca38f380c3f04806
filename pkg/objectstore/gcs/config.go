// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	// The entries of the secret: one of the two.
	tokenFile       = "access-token"
	credentialsFile = "credentials.json"
	servicePath     = "/storage/v1/"
)

// Config says which bucket, and how to reach it.
type Config struct {
	Bucket string
	// Endpoint replaces https://storage.googleapis.com; a scheme that is missing is https.
	Endpoint string
	// EndpointOfCloud is true if Endpoint is Google's own, so that tokens of Google may be
	// sent there. No Endpoint is Google's own.
	EndpointOfCloud bool
	// CredentialsDir holds the file access-token or credentials.json. Empty: the
	// identity of the workload.
	CredentialsDir string
	// StorageClass of the objects that are stored, such as NEARLINE. Empty: that of the
	// bucket.
	StorageClass string
	Transport    *http.Transport
}

// New returns a store. It makes no request but for what an identity needs.
func New(ctx context.Context, c Config) (*Store, error) {
	// Tokens are fetched over the same transport.
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: c.Transport})
	tokens, err := tokenSource(ctx, c)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &oauth2.Transport{Source: identity{tokens, sourceOf(c)}, Base: c.Transport}}
	options := []option.ClientOption{option.WithHTTPClient(client)}
	if c.Endpoint != "" {
		u, err := objectstore.Endpoint(c.Endpoint)
		if err != nil {
			return nil, err
		}
		options = append(options, option.WithEndpoint(strings.TrimSuffix(u.String(), "/")+servicePath))
	}
	service, err := storage.NewService(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", objectstore.ErrCredentials, err)
	}
	return &Store{service: service, client: client, bucket: c.Bucket, class: c.StorageClass, keptParts: keptParts}, nil
}

func tokenSource(ctx context.Context, c Config) (oauth2.TokenSource, error) {
	toGoogle := c.Endpoint == "" || c.EndpointOfCloud
	if c.CredentialsDir == "" {
		if !toGoogle {
			return nil, fmt.Errorf("%w: gcs.endpoint is not a host of Google, which alone gets the token of the workload; "+
				"name a Secret with the entry %s in gcs.gcpSecret, or remove gcs.endpoint", objectstore.ErrCredentials, tokenFile)
		}
		found, err := google.FindDefaultCredentials(ctx, storage.DevstorageReadWriteScope)
		if err != nil {
			return nil, fmt.Errorf("%w: the workload has no identity at Google: %w", objectstore.ErrCredentials, err)
		}
		return found.TokenSource, nil
	}
	secret, err := objectstore.ReadSecret(c.CredentialsDir, nil, tokenFile, credentialsFile)
	if err != nil {
		return nil, fmt.Errorf("%w (the Secret in gcs.gcpSecret)", err)
	}
	if token := secret[tokenFile]; token != "" {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}), nil
	}
	raw := secret[credentialsFile]
	switch {
	case raw == "":
		return nil, fmt.Errorf("%w: the Secret in gcs.gcpSecret must have the entry %s or %s", objectstore.ErrCredentials, tokenFile, credentialsFile)
	case !toGoogle:
		return nil, fmt.Errorf("%w: gcs.endpoint is not a host of Google, which alone gets tokens that are made with %s; "+
			"store the token for that endpoint as %s in the Secret of gcs.gcpSecret", objectstore.ErrCredentials, credentialsFile, tokenFile)
	}
	return readCredentials(ctx, []byte(raw))
}

// What tokens are requested with, in messages.
const (
	sourceWorkload = "the identity of the workload"
	sourceSecret   = "the Secret in gcs.gcpSecret"
)

func sourceOf(c Config) string {
	if c.CredentialsDir != "" {
		return sourceSecret
	}
	return sourceWorkload
}

// identity tells what went wrong with a token from what went wrong with a request.
type identity struct {
	oauth2.TokenSource

	// source names what the tokens are requested with.
	source string
}

// Token implements oauth2.TokenSource.
func (i identity) Token() (*oauth2.Token, error) {
	token, err := i.TokenSource.Token()
	var unreachable *url.Error
	if err == nil || errors.As(err, &unreachable) {
		return token, err
	}
	return nil, &tokenError{i.source, err}
}

// tokenError says that there is no token. What Google responded is not repeated: it may quote
// its request.
type tokenError struct {
	source string
	cause  error
}

// Error implements error.
func (e *tokenError) Error() string {
	text := "Google gave no token for " + e.source
	var response *oauth2.RetrieveError
	if errors.As(e.cause, &response) && response.ErrorCode != "" {
		return text + ": " + response.ErrorCode
	}
	return text + ": its exchange was rejected"
}

// Unwrap keeps the original reachable.
func (e *tokenError) Unwrap() error { return e.cause }
