// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// PartSize of uploads in parts, in bytes: a database of 8 GiB has 512 parts, where
	// some stores allow only 1,000.
	PartSize = 16 << 20
	// partsInFlight are sent at the same time, while one more is filled.
	partsInFlight = 2
	// partGrace is how long a part may still take after something has failed.
	partGrace = 10 * time.Second
	// abortTimeout bounds the clean-up after a failed upload.
	abortTimeout = 30 * time.Second
)

// RequireAbsent returns an error if the options forbid to overwrite and there is
// something. It is read before anything is sent; stores that know conditions have one on
// the upload too.
func RequireAbsent(ctx context.Context, s Store, key string, options PutOptions) error {
	if options.Overwrite {
		return nil
	}
	switch _, err := s.Stat(ctx, key); {
	case err == nil:
		return &Error{Op: "put", Key: key, Kind: ErrExists}
	case !errors.Is(err, ErrNotFound):
		return err
	}
	return nil
}

// Type returns the content type of an object.
func (o PutOptions) Type() string { return cmp.Or(o.ContentType, "application/octet-stream") }

// ByteRange returns the value of a Range header, empty for all of an object. A negative
// length means to the end.
func ByteRange(offset, length int64) string {
	switch {
	case length >= 0:
		return fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)
	case offset > 0:
		return fmt.Sprintf("bytes=%d-", offset)
	default:
		return ""
	}
}

// Parts is what Upload needs of a store that puts objects together from parts. The
// data that it is given is only valid during the call, and may be read twice by a
// call that retries.
type Parts interface {
	// PutWhole stores an object of one part.
	PutWhole(ctx context.Context, data []byte) error
	// Begin begins an upload in parts.
	Begin(ctx context.Context) error
	// PutPart sends one part; number counts from 1. Parts come in any order, and at
	// the same time.
	PutPart(ctx context.Context, number int, data []byte) error
	// Complete makes the object of the parts 1 to count visible.
	Complete(ctx context.Context, count int) error
	// Abort drops what was sent. It is called after Begin if Complete did not succeed.
	Abort(ctx context.Context) error
}

// Upload reads r to its end and stores it. If r fails, or ctx ends, the upload is
// aborted and the error is that of r or of ctx; nothing becomes visible. An error of
// Abort is added as text: parts may be left for AbortUploads.
func Upload(ctx context.Context, r io.Reader, parts Parts) (int64, error) {
	size := PartSize
	if known, ok := r.(interface{ Len() int }); ok {
		size = min(size, known.Len()+1)
	}
	first := make([]byte, size)
	n, err := ReadPart(ctx, r, first)
	switch {
	case errors.Is(err, io.EOF):
		return int64(n), parts.PutWhole(ctx, first[:n])
	case err != nil:
		return int64(n), err
	}
	if err := parts.Begin(ctx); err != nil {
		return int64(n), err
	}
	total, err := uploadParts(ctx, r, parts, first)
	if err == nil {
		return total, nil
	}
	abortCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	return total, WithCleanUp(err, parts.Abort(abortCtx))
}

// uploadParts sends first and everything that follows it. When something fails, what
// is being sent gets a moment to arrive: a store may keep a part permanently that it takes
// after the upload was aborted.
func uploadParts(ctx context.Context, r io.Reader, parts Parts, first []byte) (int64, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(partGrace, stop) })()
	free := make(chan []byte, partsInFlight+1)
	for range partsInFlight {
		free <- nil // made when it is needed
	}
	var group errgroup.Group
	group.SetLimit(partsInFlight)
	var readErr error
	total, number := int64(0), 0
	for buffer, n := first, len(first); n > 0; {
		number++
		total += int64(n)
		data, part := buffer[:n], number
		group.Go(func() error {
			defer func() { free <- data[:cap(data)] }()
			err := parts.PutPart(sending, part, data)
			if err != nil {
				fail(err)
			}
			return err
		})
		if readErr != nil {
			break
		}
		if buffer = <-free; buffer == nil {
			buffer = make([]byte, PartSize)
		}
		n, readErr = ReadPart(ctx, r, buffer)
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			fail(readErr)
			break
		}
	}
	err := group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return total, cause
	}
	if err != nil {
		return total, err
	}
	return total, parts.Complete(ctx, number)
}

// ReadPart fills buffer. The error is io.EOF if r ended in it, or at its end.
func ReadPart(ctx context.Context, r io.Reader, buffer []byte) (int, error) {
	n := 0
	for n < len(buffer) {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		m, err := r.Read(buffer[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
