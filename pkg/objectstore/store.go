// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Why a call did not succeed. Errors of a Store match at most one of these; one that
// matches none is of the network or of the store.
var (
	// ErrNotFound: there is no such object.
	ErrNotFound = errors.New("object not found")
	// ErrNoBucket: there is no such bucket or container, or no such directory.
	ErrNoBucket = errors.New("bucket not found")
	// ErrExists: an object with this key exists and was not to be overwritten.
	ErrExists = errors.New("object exists")
	// ErrDenied: the store rejected the credentials, or they may not do this.
	ErrDenied = errors.New("the store denied access")
	// ErrUnreadable: the store has the object, and the credentials are right.
	ErrUnreadable = errors.New("the store has the object and does not return it: the object is in an archive tier, or the key that encrypts it cannot be used")
	// ErrRegion: the request was sent to, or signed for, a region that the bucket is not in.
	ErrRegion = errors.New("the bucket is in another region")
	// ErrCredentials: the credentials cannot be used at all.
	ErrCredentials = errors.New("unusable credentials")
	// ErrStalled: no byte moved for too long.
	ErrStalled = errors.New("the store stalled")
	// ErrDamaged: the store has, or was sent, other bytes than those that were to be
	// stored, as its checksum tells.
	ErrDamaged = errors.New("the bytes changed on their way into the store")
	// ErrNoSpace: the volume is full.
	ErrNoSpace = errors.New("no space left")
)

// Object is what a store knows of an object.
type Object struct {
	Key string
	// Size in bytes.
	Size     int64
	Modified time.Time
}

// PutOptions say how an object is stored.
type PutOptions struct {
	// Overwrite replaces an object with the same key. Without it Put fails with
	// ErrExists, as long as no other writes the same key at the same moment; where
	// the store knows conditions, even then.
	Overwrite bool
	// ContentType, such as application/json. Default: application/octet-stream.
	ContentType string
	// Prove asks a store that has not returned a checksum for it once more. What it has
	// responded is compared also without that.
	Prove bool
}

// Store is a bucket. All methods are safe for concurrent use. They end soon after
// their context does, and retry what the store reports as passing. An object becomes
// visible only when it is complete.
type Store interface {
	// Put stores what r gives until io.EOF and returns how many bytes that were and what
	// proves it. If r fails, or ctx ends, nothing becomes visible, nothing that was there
	// is lost, and the error wraps that of r. If the store returns a checksum of other
	// bytes, the error matches ErrDamaged and there is no object. Memory is bounded
	// whatever the size. A Read that blocks must end by itself when ctx does.
	Put(ctx context.Context, key string, r io.Reader, options PutOptions) (Written, error)
	// Get reads length bytes from offset on; a negative length means to the end. The
	// reader fails if the connection is cut before that.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// Stat returns what is known of an object.
	Stat(ctx context.Context, key string) (Object, error)
	// List returns all objects whose keys begin with prefix, in the order of their
	// keys' bytes. After an error nothing follows.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Delete deletes an object; one that is not there is no error.
	Delete(ctx context.Context, key string) error
	// AbortUploads deletes what interrupted Puts have left behind before this time, and returns
	// how many. It deletes only what was sent for keys with this prefix that are ours: other
	// programs upload to the same bucket. Stores that clean up by themselves return 0.
	AbortUploads(ctx context.Context, prefix string, ours func(key string) bool, before time.Time) (int, error)
}

// IsOfObject is true of a response of the store that is about one object. A request for another object may succeed.
func IsOfObject(err error) bool {
	for _, kind := range []error{ErrNotFound, ErrExists, ErrDenied, ErrUnreadable} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// WithCleanUp adds to a failure that the clean-up after it failed, too. That is text only: errors.Is and errors.As find
// the failure, because a missing right to delete is not why the store failed.
func WithCleanUp(failed, cleanUp error) error {
	if cleanUp == nil {
		return failed
	}
	return fmt.Errorf("%w; the clean-up after it failed, too: %s", failed, cleanUp.Error())
}

// Error says which call failed for which key.
type Error struct {
	// Op is what was tried, such as "put".
	Op  string
	Key string
	// Kind is one of the sentinels of this package, or nil.
	Kind error
	// Cause is what the call returned; it may be nil.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Kind == nil:
		return fmt.Sprintf("%s %s: %v", e.Op, e.Key, e.Cause)
	case e.Cause == nil:
		return fmt.Sprintf("%s %s: %v", e.Op, e.Key, e.Kind)
	default:
		return fmt.Sprintf("%s %s: %v: %v", e.Op, e.Key, e.Kind, e.Cause)
	}
}

// Unwrap makes errors.Is and errors.As look at both the kind and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
