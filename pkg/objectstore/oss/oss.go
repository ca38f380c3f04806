// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// Store is a bucket. It implements objectstore.Store.
type Store struct {
	client *oss.Client
	bucket string
}

var _ objectstore.Store = (*Store)(nil)

// Put implements objectstore.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, options objectstore.PutOptions) (objectstore.Written, error) {
	if err := objectstore.RequireAbsent(ctx, s, key, options); err != nil {
		return objectstore.Written{}, err
	}
	u := &upload{store: s, key: key, options: options}
	n, err := objectstore.Upload(ctx, r, u)
	return objectstore.Written{Size: n, Checksum: u.proof}, failed("put", key, err)
}

// Get implements objectstore.Store.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if length == 0 {
		return http.NoBody, nil
	}
	request := &oss.GetObjectRequest{Bucket: &s.bucket, Key: &key}
	if part := objectstore.ByteRange(offset, length); part != "" {
		request.Range, request.RangeBehavior = &part, oss.Ptr("standard")
	}
	result, err := s.client.GetObject(ctx, request)
	if err != nil {
		return nil, failed("get", key, err)
	}
	return objectstore.Body("get", key, result.Body), nil
}

// Stat implements objectstore.Store.
func (s *Store) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	result, err := s.client.HeadObject(ctx, &oss.HeadObjectRequest{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return objectstore.Object{}, failed("stat", key, err)
	}
	return objectstore.Object{Key: key, Size: result.ContentLength, Modified: oss.ToTime(result.LastModified)}, nil
}

// List implements objectstore.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		pages := s.client.NewListObjectsV2Paginator(&oss.ListObjectsV2Request{Bucket: &s.bucket, Prefix: &prefix, MaxKeys: 1000})
		for pages.HasNext() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(objectstore.Object{}, failed("list", prefix, err))
				return
			}
			for _, o := range page.Contents {
				object := objectstore.Object{Key: oss.ToString(o.Key), Size: o.Size, Modified: oss.ToTime(o.LastModified)}
				if !yield(object, nil) {
					return
				}
			}
		}
	}
}

// Delete implements objectstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &oss.DeleteObjectRequest{Bucket: &s.bucket, Key: &key})
	if err = failed("delete", key, err); errors.Is(err, objectstore.ErrNotFound) {
		return nil
	}
	return err
}

// AbortUploads implements objectstore.Store: incomplete uploads in parts cost money and
// are not listed.
func (s *Store) AbortUploads(ctx context.Context, prefix string, ours func(key string) bool, before time.Time) (int, error) {
	pages := s.client.NewListMultipartUploadsPaginator(&oss.ListMultipartUploadsRequest{Bucket: &s.bucket, Prefix: &prefix})
	aborted := 0
	for pages.HasNext() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return aborted, failed("abort uploads", prefix, err)
		}
		for _, u := range page.Uploads {
			if !ours(oss.ToString(u.Key)) || !oss.ToTime(u.Initiated).Before(before) {
				continue
			}
			_, err := s.client.AbortMultipartUpload(ctx, &oss.AbortMultipartUploadRequest{Bucket: &s.bucket, Key: u.Key, UploadId: u.UploadId})
			if err != nil && code(err) != codeNoSuchUpload {
				return aborted, failed("abort uploads", oss.ToString(u.Key), err)
			}
			aborted++
		}
	}
	return aborted, nil
}

const codeNoSuchUpload = "NoSuchUpload"

// kinds maps the store's codes.
var kinds = map[string]error{
	"NoSuchKey":             objectstore.ErrNotFound,
	"NoSuchBucket":          objectstore.ErrNoBucket,
	"FileAlreadyExists":     objectstore.ErrExists,
	"ObjectAlreadyExists":   objectstore.ErrExists,
	"InvalidDigest":         objectstore.ErrDamaged,
	"AccessDenied":          objectstore.ErrDenied,
	"InvalidAccessKeyId":    objectstore.ErrDenied,
	"SignatureDoesNotMatch": objectstore.ErrDenied,
	"SecurityTokenExpired":  objectstore.ErrDenied,
}

// failed wraps an error of the client; nil, and what is wrapped already, stay.
func failed(op, key string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*objectstore.Error)(nil); errors.As(err, &e) {
		return err
	}
	e := &objectstore.Error{Op: op, Key: key, Kind: kindOf(op, err), Cause: err}
	var service *oss.ServiceError
	if errors.As(err, &service) {
		// Its text quotes the request, with the access key ID, and the whole response.
		e.Cause = fmt.Errorf("%d %s: %s", service.StatusCode, service.Code, service.Message)
	}
	return e
}

func kindOf(op string, err error) error {
	switch c := code(err); {
	case op == "get" && (c == "InvalidObjectState" || strings.HasPrefix(strings.ToUpper(c), "KMS")):
		return objectstore.ErrUnreadable
	case op == "delete" && c == "FileImmutable":
		return objectstore.ErrDenied
	}
	if kind := kinds[code(err)]; kind != nil {
		return kind
	}
	var service *oss.ServiceError
	switch {
	case errors.Is(err, objectstore.ErrStalled):
		return objectstore.ErrStalled
	case !errors.As(err, &service):
		return nil
	case service.StatusCode == http.StatusNotFound:
		return objectstore.ErrNotFound
	case service.StatusCode == http.StatusForbidden:
		return objectstore.ErrDenied
	case service.StatusCode == http.StatusPreconditionFailed:
		return objectstore.ErrExists
	default:
		return nil
	}
}

func code(err error) string {
	var service *oss.ServiceError
	if errors.As(err, &service) {
		return service.Code
	}
	return ""
}
