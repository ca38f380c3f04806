// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// Store is a bucket. It implements objectstore.Store.
type Store struct {
	service *storage.Service
	// client is what service uses.
	client *http.Client
	bucket string
	// class of the objects that are stored; it may be empty.
	class string
	// keptParts is how much of an object is kept while it is sent.
	keptParts int
}

var _ objectstore.Store = (*Store)(nil)

// Put implements objectstore.Store. The object is one request, so that an interrupted one
// leaves nothing. What fails in passing is repeated while all that was sent is still in
// memory; a larger object that fails later fails.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, options objectstore.PutOptions) (objectstore.Written, error) {
	if err := objectstore.RequireAbsent(ctx, s, key, options); err != nil {
		return objectstore.Written{}, err
	}
	u := &upload{store: s, key: key, options: options}
	n, err := u.read(ctx, r)
	if err != nil {
		return objectstore.Written{Size: n}, failed("put", key, err)
	}
	stored, err := retry(ctx, u.again, func() (*storage.Object, error) { return u.send(ctx) })
	if u.rest != nil {
		n += u.rest.n
	}
	written := objectstore.Written{Size: n}
	if err == nil {
		written.Checksum, err = u.compare(ctx, stored)
	}
	err = failed("put", key, err)
	var e *objectstore.Error
	if errors.As(err, &e) && errors.Is(e.Kind, objectstore.ErrNotFound) {
		e.Kind = objectstore.ErrNoBucket // that is all that can be missing
	}
	return written, err
}

// Get implements objectstore.Store.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if length == 0 {
		return http.NoBody, nil
	}
	call := s.service.Objects.Get(s.bucket, key).Context(ctx)
	if part := objectstore.ByteRange(offset, length); part != "" {
		call.Header().Set("Range", part)
	}
	response, err := retry(ctx, isPassing, func() (*http.Response, error) { return call.Download() }) //nolint:bodyclose // the reader closes it
	if err != nil {
		return nil, s.missing(ctx, failed("get", key, err))
	}
	return objectstore.Body("get", key, response.Body), nil
}

// Stat implements objectstore.Store.
func (s *Store) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	call := s.service.Objects.Get(s.bucket, key).Context(ctx)
	object, err := retry(ctx, isPassing, func() (*storage.Object, error) { return call.Do() })
	if err != nil {
		return objectstore.Object{}, s.missing(ctx, failed("stat", key, err))
	}
	return objectOf(object), nil
}

// missing finds out whether the object or the bucket is.
func (s *Store) missing(ctx context.Context, err error) error {
	var e *objectstore.Error
	if !errors.As(err, &e) || !errors.Is(err, objectstore.ErrNotFound) {
		return err
	}
	_, bucketErr := s.service.Buckets.Get(s.bucket).Context(ctx).Do()
	var response *googleapi.Error
	if errors.As(bucketErr, &response) && response.Code == http.StatusNotFound {
		e.Kind = objectstore.ErrNoBucket
	}
	return err
}

func objectOf(o *storage.Object) objectstore.Object {
	object := objectstore.Object{Key: o.Name, Size: int64(o.Size)}
	if modified, err := time.Parse(time.RFC3339, o.Updated); err == nil {
		object.Modified = modified
	}
	return object
}

// List implements objectstore.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		token := ""
		for {
			call := s.service.Objects.List(s.bucket).Prefix(prefix).PageToken(token).Context(ctx)
			page, err := retry(ctx, isPassing, func() (*storage.Objects, error) { return call.Do() })
			if err = failed("list", prefix, err); err != nil {
				var e *objectstore.Error
				if errors.As(err, &e) && errors.Is(e.Kind, objectstore.ErrNotFound) {
					e.Kind = objectstore.ErrNoBucket
				}
				yield(objectstore.Object{}, err)
				return
			}
			for _, o := range page.Items {
				if !yield(objectOf(o), nil) {
					return
				}
			}
			if token = page.NextPageToken; token == "" {
				return
			}
		}
	}
}

// Delete implements objectstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	call := s.service.Objects.Delete(s.bucket, key).Context(ctx)
	_, err := retry(ctx, isPassing, func() (struct{}, error) { return struct{}{}, call.Do() })
	if err = failed("delete", key, err); errors.Is(err, objectstore.ErrNotFound) {
		return nil
	}
	return err
}

// AbortUploads implements objectstore.Store: an interrupted Put leaves nothing.
func (s *Store) AbortUploads(context.Context, string, func(string) bool, time.Time) (int, error) {
	return 0, nil
}

const (
	maxTries   = 5
	firstDelay = 200 * time.Millisecond
)

// retry repeats a call that changes nothing if it is repeated, while again says that this
// may help.
func retry[T any](ctx context.Context, again func(error) bool, call func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		result, err := call()
		if err == nil || try == maxTries || !again(err) {
			return result, err
		}
		timer := time.NewTimer(firstDelay << try)
		select {
		case <-ctx.Done():
			timer.Stop()
			return result, err
		case <-timer.C:
		}
	}
}

// isPassing is true if the store says that it cannot respond now, or does not respond.
func isPassing(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || objectstore.IsFinal(err) {
		return false
	}
	var token *tokenError
	if errors.As(err, &token) {
		return false
	}
	var response *googleapi.Error
	if errors.As(err, &response) {
		return response.Code == http.StatusTooManyRequests || response.Code >= http.StatusInternalServerError
	}
	return true
}

// failed wraps an error of the client; nil, and what is wrapped already, stay.
func failed(op, key string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*objectstore.Error)(nil); errors.As(err, &e) {
		return err
	}
	e := &objectstore.Error{Op: op, Key: key, Cause: err}
	var response *googleapi.Error
	var token *tokenError
	switch {
	case errors.As(err, &response):
		e.Kind = kindOf(response.Code)
		if op == "get" && response.Code == http.StatusBadRequest && strings.Contains(strings.ToUpper(response.Body), "KMS") {
			e.Kind = objectstore.ErrUnreadable // responses to downloads have no other mark of a key that is disabled
		}
		// Its text quotes the whole response, which may quote the request.
		e.Cause = responseError{response}
	case errors.As(err, &token):
		e.Kind, e.Cause = objectstore.ErrDenied, token
	case errors.Is(err, objectstore.ErrStalled):
		e.Kind = objectstore.ErrStalled
	}
	return e
}

// responseError shows a response of the store in one line.
type responseError struct{ original *googleapi.Error }

// Error implements error.
func (e responseError) Error() string {
	text := fmt.Sprintf("%d %s", e.original.Code, http.StatusText(e.original.Code))
	if len(e.original.Errors) > 0 && e.original.Errors[0].Reason != "" {
		text += " (" + e.original.Errors[0].Reason + ")"
	}
	return text
}

// Unwrap keeps the original reachable.
func (e responseError) Unwrap() error { return e.original }

func kindOf(status int) error {
	switch status {
	case http.StatusNotFound:
		return objectstore.ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return objectstore.ErrDenied
	case http.StatusPreconditionFailed, http.StatusConflict:
		return objectstore.ErrExists
	default:
		return nil
	}
}
