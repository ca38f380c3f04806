// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ReadAll reads an object of at most limit bytes. A larger one is an error.
func ReadAll(ctx context.Context, s Store, key string, limit int64) ([]byte, error) {
	body, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit {
		return nil, &Error{Op: "get", Key: key, Cause: fmt.Errorf("it has more than %d bytes", limit)}
	}
	return raw, nil
}

// PutBytes stores raw.
func PutBytes(ctx context.Context, s Store, key string, raw []byte, options PutOptions) error {
	_, err := s.Put(ctx, key, bytes.NewReader(raw), options)
	return err
}

const (
	// maxResumes is how often a download is taken up again in which bytes came.
	maxResumes  = 20
	resumeDelay = 200 * time.Millisecond
	maxDelay    = 10 * time.Second
)

// Resume reads an object of a known size from its start to its end, and goes on where
// it was when a connection breaks. Errors that no new connection heals are returned
// at once. Close it.
func Resume(ctx context.Context, s Store, object Object) io.ReadCloser {
	return &resumer{ctx: ctx, store: s, object: object}
}

type resumer struct {
	ctx     context.Context //nolint:containedctx // a reader has no context of its own
	store   Store
	object  Object
	offset  int64
	body    io.ReadCloser
	retries int
}

// Read implements io.Reader.
func (r *resumer) Read(p []byte) (int, error) {
	for {
		if r.offset == r.object.Size {
			return 0, io.EOF
		}
		n, err := r.tryRead(p[:min(int64(len(p)), r.object.Size-r.offset)])
		r.offset += int64(n)
		if n > 0 {
			return n, nil
		}
		if err == nil {
			continue
		}
		if isFinal(err) || r.ctx.Err() != nil || r.retries >= maxResumes {
			return 0, err
		}
		r.closeBody()
		r.retries++
		if err := pause(r.ctx, min(maxDelay, resumeDelay<<min(r.retries, 8))); err != nil {
			return 0, err
		}
	}
}

func (r *resumer) tryRead(p []byte) (int, error) {
	if r.body == nil {
		body, err := r.store.Get(r.ctx, r.object.Key, r.offset, -1)
		if err != nil {
			return 0, err
		}
		r.body = body
	}
	n, err := r.body.Read(p)
	if errors.Is(err, io.EOF) && r.offset+int64(n) < r.object.Size {
		err = fmt.Errorf("get %s: %d of %d bytes came: %w", r.object.Key, r.offset+int64(n), r.object.Size, io.ErrUnexpectedEOF)
	}
	return n, err
}

func (r *resumer) closeBody() {
	if r.body != nil {
		_ = r.body.Close()
		r.body = nil
	}
}

// Close implements io.Closer.
func (r *resumer) Close() error {
	r.closeBody()
	return nil
}

// isFinal is true for errors that trying again does not heal. A stall had its time.
func isFinal(err error) bool {
	if IsFinal(err) {
		return true
	}
	for _, kind := range []error{ErrNotFound, ErrNoBucket, ErrDenied, ErrCredentials, ErrUnreadable, ErrRegion} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Body wraps the body of a response, so that what breaks it is an *Error.
func Body(op, key string, body io.ReadCloser) io.ReadCloser {
	return &responseBody{ReadCloser: body, op: op, key: key}
}

type responseBody struct {
	io.ReadCloser

	op, key string
}

// Read implements io.Reader.
func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	e := &Error{Op: b.op, Key: b.key, Cause: err}
	if errors.Is(err, ErrStalled) {
		e.Kind = ErrStalled
	}
	return n, e
}
