// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
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
func (s *Store) Put(ctx context.Context, key string, r io.Reader, options objectstore.PutOptions) (int64, error) {
	if err := objectstore.RequireAbsent(ctx, s, key, options); err != nil {
		return 0, err
	}
	n, err := objectstore.Upload(ctx, r, &upload{client: s.client.NewBlockBlobClient(key), options: options, tier: s.tier, salt: time.Now().UnixNano()})
	return n, failed("put", key, err)
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

// upload implements objectstore.Parts.
type upload struct {
	client  *blockblob.Client
	options objectstore.PutOptions
	tier    string
	// salt keeps the blocks of two uploads of the same key apart, and tells when this one
	// was begun, in nanoseconds since 1970.
	salt int64
}

func (u *upload) conditions() *blob.AccessConditions {
	if u.options.Overwrite {
		return nil
	}
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: ptr.To(azcore.ETagAny)}}
}

func (u *upload) headers() *blob.HTTPHeaders {
	return &blob.HTTPHeaders{BlobContentType: ptr.To(u.options.Type())}
}

// accessTier returns the tier of the blob; nil leaves it to the account.
func (u *upload) accessTier() *blob.AccessTier {
	if u.tier == "" {
		return nil
	}
	return ptr.To(blob.AccessTier(u.tier))
}

// PutWhole implements objectstore.Parts.
func (u *upload) PutWhole(ctx context.Context, data []byte) error {
	_, err := u.client.Upload(ctx, body(data), &blockblob.UploadOptions{
		HTTPHeaders: u.headers(), AccessConditions: u.conditions(), Tier: u.accessTier(),
	})
	return err
}

// Begin implements objectstore.Parts: there is nothing to begin.
func (u *upload) Begin(context.Context) error { return nil }

// PutPart implements objectstore.Parts.
func (u *upload) PutPart(ctx context.Context, number int, data []byte) error {
	_, err := u.client.StageBlock(ctx, u.block(number), body(data), nil)
	return err
}

// Complete implements objectstore.Parts.
func (u *upload) Complete(ctx context.Context, count int) error {
	blocks := make([]string, 0, count)
	for number := 1; number <= count; number++ {
		blocks = append(blocks, u.block(number))
	}
	_, err := u.client.CommitBlockList(ctx, blocks, &blockblob.CommitBlockListOptions{
		HTTPHeaders: u.headers(), AccessConditions: u.conditions(), Tier: u.accessTier(),
	})
	return err
}

// Abort implements objectstore.Parts: blocks cannot be deleted without making them a blob
// for a moment, which is left to Sweep.
func (u *upload) Abort(context.Context) error { return nil }

// block names a block; all names of a blob's blocks must have the same length.
func (u *upload) block(number int) string {
	var id [blockName]byte
	binary.BigEndian.PutUint64(id[:blockName/2], uint64(u.salt))
	binary.BigEndian.PutUint64(id[blockName/2:], uint64(number))
	return base64.StdEncoding.EncodeToString(id[:])
}

// blockName is the length of the name of a block before it is encoded.
const blockName = 16

// begunAt returns when the upload of a block was begun, by its name; false for a block that
// this package has not named.
func begunAt(block string) (time.Time, bool) {
	id, err := base64.StdEncoding.DecodeString(block)
	if err != nil || len(id) != blockName {
		return time.Time{}, false
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(id[:blockName/2])))
	number := binary.BigEndian.Uint64(id[blockName/2:])
	return at, at.After(firstRelease) && number > 0 && number <= maxBlocks
}

// maxBlocks is how many blocks a blob may have.
const maxBlocks = 50_000

// firstRelease is before any block was named so.
var firstRelease = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

func body(data []byte) io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(data)) }

// failed wraps an error of the client; nil, and what is wrapped already, stay.
func failed(op, key string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*objectstore.Error)(nil); errors.As(err, &e) {
		return err
	}
	e := &objectstore.Error{Op: op, Key: key, Kind: kindOf(err), Cause: err}
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

func kindOf(err error) error {
	switch {
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

// responseError shows an answer of the store in one line.
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
