// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// Store is a container. It implements objectstore.Store.
type Store struct {
	client *container.Client
	// tier of the blobs that are stored; it may be empty.
	tier string
}

var _ objectstore.Store = (*Store)(nil)

// Put implements objectstore.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, options objectstore.PutOptions) (objectstore.Written, error) {
	if err := objectstore.RequireAbsent(ctx, s, key, options); err != nil {
		return objectstore.Written{}, err
	}
	u := &upload{store: s, key: key, client: s.client.NewBlockBlobClient(key), options: options, tier: s.tier, salt: time.Now().UnixNano()}
	n, err := objectstore.Upload(ctx, r, u)
	return objectstore.Written{Size: n, Checksum: u.proof}, failed("put", key, err)
}

// Get implements objectstore.Store.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if length == 0 {
		return http.NoBody, nil
	}
	options := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset, Count: max(length, 0)}}
	response, err := s.client.NewBlobClient(key).DownloadStream(ctx, options)
	if err != nil {
		return nil, failed("get", key, err)
	}
	return objectstore.Body("get", key, response.Body), nil
}

// Stat implements objectstore.Store.
func (s *Store) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	properties, err := s.client.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return objectstore.Object{}, failed("stat", key, err)
	}
	return objectstore.Object{Key: key, Size: ptr.Deref(properties.ContentLength, 0), Modified: ptr.Deref(properties.LastModified, time.Time{})}, nil
}

// List implements objectstore.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		pages := s.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix})
		for pages.More() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(objectstore.Object{}, failed("list", prefix, err))
				return
			}
			for _, item := range page.Segment.BlobItems {
				if directory(item) {
					continue
				}
				object := objectstore.Object{Key: ptr.Deref(item.Name, "")}
				if p := item.Properties; p != nil {
					object.Size, object.Modified = ptr.Deref(p.ContentLength, 0), ptr.Deref(p.LastModified, time.Time{})
				}
				if !yield(object, nil) {
					return
				}
			}
		}
	}
}

// directory is true for what an account with a hierarchical namespace lists among its blobs,
// and deletes only when nothing is in it.
func directory(item *container.BlobItem) bool {
	return item.Properties != nil && ptr.Deref(item.Properties.ResourceType, "") == "directory"
}

// Delete implements objectstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.NewBlobClient(key).Delete(ctx, nil)
	if err = failed("delete", key, err); errors.Is(err, objectstore.ErrNotFound) {
		return nil
	}
	return err
}

func body(data []byte) io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(data)) }

// failed wraps an error of the client; nil, and what is wrapped already, stay.
func failed(op, key string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*objectstore.Error)(nil); errors.As(err, &e) {
		return err
	}
	e := &objectstore.Error{Op: op, Key: key, Kind: kindOf(op, err), Cause: err}
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		// Its text has a dozen lines; what matters of them is this.
		e.Cause = responseError{response}
	}
	var identity *azidentity.AuthenticationFailedError
	if errors.As(err, &identity) {
		e.Cause = identityError{identity}
	}
	return e
}

func kindOf(op string, err error) error {
	switch {
	case op == "get" && bloberror.HasCode(err, bloberror.BlobArchived, bloberror.BlobBeingRehydrated, bloberror.BlobUsesCustomerSpecifiedEncryption):
		return objectstore.ErrUnreadable
	case op == "delete" && bloberror.HasCode(err, bloberror.BlobImmutableDueToPolicy):
		return objectstore.ErrDenied
	case bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted):
		return objectstore.ErrNoBucket
	case bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ResourceNotFound):
		return objectstore.ErrNotFound
	case bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet, bloberror.TargetConditionNotMet):
		return objectstore.ErrExists
	case errors.Is(err, objectstore.ErrStalled):
		return objectstore.ErrStalled
	}
	var identity *azidentity.AuthenticationFailedError
	if errors.As(err, &identity) {
		return objectstore.ErrDenied
	}
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		return nil
	}
	switch response.StatusCode {
	case http.StatusNotFound:
		return objectstore.ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return objectstore.ErrDenied
	case http.StatusConflict, http.StatusPreconditionFailed:
		return objectstore.ErrExists
	default:
		return nil
	}
}

// responseError shows a response of the store in one line.
type responseError struct{ *azcore.ResponseError }

// Error implements error.
func (e responseError) Error() string {
	return http.StatusText(e.StatusCode) + " (" + e.ErrorCode + ")"
}

// Unwrap keeps the original reachable.
func (e responseError) Unwrap() error { return e.ResponseError }

// identityError says in one line why Azure gave no token.
type identityError struct {
	*azidentity.AuthenticationFailedError
}

// Error implements error.
func (e identityError) Error() string {
	const text = "no token for the identity of the workload"
	if e.RawResponse == nil {
		return text
	}
	var said struct {
		Description string `json:"error_description"`
	}
	payload, err := runtime.Payload(e.RawResponse)
	if err != nil || json.Unmarshal(payload, &said) != nil || said.Description == "" {
		return text + ": " + http.StatusText(e.RawResponse.StatusCode)
	}
	first, _, _ := strings.Cut(said.Description, "\n")
	return text + ": " + strings.TrimSpace(first)
}

// Unwrap keeps the original reachable.
func (e identityError) Unwrap() error { return e.AuthenticationFailedError }
