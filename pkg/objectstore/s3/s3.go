// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// Store is a bucket. It implements objectstore.Store.
type Store struct {
	client     *s3.Client
	bucket     string
	encryption string
	// kmsKey and class may be empty.
	kmsKey, class string
	// aws is true if the store is that of AWS, and not one that speaks its protocol.
	aws bool
	// sent are options of the calls that send data without a checksum of its own.
	sent []func(*s3.Options)
	// summed are those of the calls that send data with its checksum.
	summed []func(*s3.Options)
}

var _ objectstore.Store = (*Store)(nil)

// Put implements objectstore.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, options objectstore.PutOptions) (objectstore.Written, error) {
	err := objectstore.RequireAbsent(ctx, s, key, options)
	// A client that may not list a bucket gets 403 for a missing object, too. Then the
	// store must see to it that nothing is overwritten.
	unseen := errors.Is(err, objectstore.ErrDenied)
	if err != nil && !unseen {
		return objectstore.Written{}, err
	}
	u := &upload{store: s, key: key, options: options, unseen: unseen}
	n, err := objectstore.Upload(ctx, r, u)
	return objectstore.Written{Size: n, Checksum: u.proof}, failed("put", key, err)
}

// Get implements objectstore.Store.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if length == 0 {
		return http.NoBody, nil
	}
	input := &s3.GetObjectInput{Bucket: &s.bucket, Key: &key}
	if part := objectstore.ByteRange(offset, length); part != "" {
		input.Range = &part
	}
	output, err := s.client.GetObject(ctx, input)
	if err != nil {
		return nil, failed("get", key, err)
	}
	return objectstore.Body("get", key, output.Body), nil
}

// Stat implements objectstore.Store.
func (s *Store) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	output, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return objectstore.Object{}, failed("stat", key, err)
	}
	return objectstore.Object{Key: key, Size: aws.ToInt64(output.ContentLength), Modified: aws.ToTime(output.LastModified)}, nil
}

// List implements objectstore.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(objectstore.Object{}, failed("list", prefix, err))
				return
			}
			for _, o := range page.Contents {
				object := objectstore.Object{Key: aws.ToString(o.Key), Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified)}
				if !yield(object, nil) {
					return
				}
			}
		}
	}
}

// Delete implements objectstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
	if err = failed("delete", key, err); errors.Is(err, objectstore.ErrNotFound) {
		return nil
	}
	return err
}

// AbortUploads implements objectstore.Store: incomplete uploads in parts cost money and
// are not listed.
func (s *Store) AbortUploads(ctx context.Context, prefix string, ours func(key string) bool, before time.Time) (int, error) {
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &prefix})
	aborted := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if isNotImplemented(err) {
			return aborted, nil
		}
		if err != nil {
			return aborted, failed("abort uploads", prefix, err)
		}
		for _, u := range page.Uploads {
			if !ours(aws.ToString(u.Key)) || !aws.ToTime(u.Initiated).Before(before) {
				continue
			}
			_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: u.Key, UploadId: u.UploadId})
			if err != nil && code(err) != codeNoSuchUpload {
				return aborted, failed("abort uploads", aws.ToString(u.Key), err)
			}
			aborted++
		}
	}
	return aborted, nil
}

const codeNoSuchUpload = "NoSuchUpload"

// kinds maps the protocol's codes.
var kinds = map[string]error{
	"NoSuchKey":                    objectstore.ErrNotFound,
	"NotFound":                     objectstore.ErrNotFound,
	"NoSuchBucket":                 objectstore.ErrNoBucket,
	"BadDigest":                    objectstore.ErrDamaged,
	"XAmzContentSHA256Mismatch":    objectstore.ErrDamaged,
	"PreconditionFailed":           objectstore.ErrExists,
	"ConditionalRequestConflict":   objectstore.ErrExists,
	"AccessDenied":                 objectstore.ErrDenied,
	"Forbidden":                    objectstore.ErrDenied,
	"InvalidAccessKeyId":           objectstore.ErrDenied,
	"SignatureDoesNotMatch":        objectstore.ErrDenied,
	"ExpiredToken":                 objectstore.ErrDenied,
	"InvalidToken":                 objectstore.ErrDenied,
	"XAdminUserNotFound":           objectstore.ErrDenied, // versitygw, with status 404
	"AuthorizationHeaderMalformed": objectstore.ErrDenied,
	"PermanentRedirect":            objectstore.ErrRegion,
}

// unreadable are the codes of a store that has the object that is requested and does not return it.
var unreadable = []string{"InvalidObjectState", "KMS.DisabledException", "KMS.KMSInvalidStateException", "KMS.NotFoundException"}

// failed wraps an error of the client; nil, and what is wrapped already, stay.
func failed(op, key string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*objectstore.Error)(nil); errors.As(err, &e) {
		return err
	}
	return &objectstore.Error{Op: op, Key: key, Kind: kindOf(op, err), Cause: err}
}

func kindOf(op string, err error) error {
	switch c := code(err); {
	case op == "get" && slices.Contains(unreadable, c):
		return objectstore.ErrUnreadable
	case c == "AuthorizationHeaderMalformed" && isAboutRegion(err):
		return objectstore.ErrRegion
	case kinds[c] != nil:
		return kinds[c]
	}
	switch status(err) {
	case http.StatusMovedPermanently:
		return objectstore.ErrRegion // a response to HEAD has no code
	case http.StatusNotFound:
		return objectstore.ErrNotFound
	case http.StatusForbidden, http.StatusUnauthorized:
		return objectstore.ErrDenied
	case http.StatusPreconditionFailed:
		return objectstore.ErrExists
	}
	if errors.Is(err, objectstore.ErrStalled) {
		return objectstore.ErrStalled
	}
	return nil
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// isAboutRegion is true of a signature that is for another region. The same code stands for an access key that has not the
// form of one.
func isAboutRegion(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && strings.Contains(api.ErrorMessage(), "region")
}

func status(err error) int {
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

func isNotImplemented(err error) bool {
	return err != nil && (code(err) == "NotImplemented" || status(err) == http.StatusNotImplemented)
}
