// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// upload implements objectstore.Parts.
type upload struct {
	store   *Store
	key     string
	options objectstore.PutOptions
	id      string
	// unseen is true if nobody has looked whether there is an object.
	unseen bool

	mu    sync.Mutex
	parts map[int]types.CompletedPart
}

// condition makes the store refuse to overwrite.
func (u *upload) condition() *string {
	if u.options.Overwrite {
		return nil
	}
	return aws.String("*")
}

// mayDrop is true if an upload may be tried without its condition: the store has none, and
// Put has looked already.
func (u *upload) mayDrop(condition *string, err error) bool {
	return condition != nil && !u.unseen && notImplemented(err)
}

// refused explains the error of an upload whose condition the store does not have.
func (u *upload) refused(err error) error {
	if !u.unseen || !notImplemented(err) {
		return err
	}
	return &objectstore.Error{Op: "put", Key: u.key, Kind: objectstore.ErrDenied, Cause: errors.New("the credentials may not see whether the object exists, " +
		"and the store has no conditional writes; give them the right to list the bucket (s3:ListBucket)")}
}

// key returns the key with which the store encrypts; nil leaves it to the store.
func (s *Store) key() *string {
	if s.kmsKey == "" {
		return nil
	}
	return &s.kmsKey
}

// PutWhole implements objectstore.Parts.
func (u *upload) PutWhole(ctx context.Context, data []byte) error {
	put := func(condition *string) error {
		_, err := u.store.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &u.store.bucket, Key: &u.key, Body: bytes.NewReader(data), ContentType: aws.String(u.options.Type()),
			IfNoneMatch: condition, ServerSideEncryption: types.ServerSideEncryption(u.store.encryption),
			SSEKMSKeyId: u.store.key(), StorageClass: types.StorageClass(u.store.class),
		}, u.store.sent...)
		return err
	}
	condition := u.condition()
	err := put(condition)
	if u.mayDrop(condition, err) {
		err = put(nil) // what Put has looked for is all that this store can do
	}
	return u.refused(err)
}

// Begin implements objectstore.Parts.
func (u *upload) Begin(ctx context.Context) error {
	output, err := u.store.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &u.store.bucket, Key: &u.key, ContentType: aws.String(u.options.Type()),
		ServerSideEncryption: types.ServerSideEncryption(u.store.encryption),
		SSEKMSKeyId:          u.store.key(), StorageClass: types.StorageClass(u.store.class),
	})
	if err != nil {
		return err
	}
	u.id, u.parts = aws.ToString(output.UploadId), map[int]types.CompletedPart{}
	return nil
}

// PutPart implements objectstore.Parts.
func (u *upload) PutPart(ctx context.Context, number int, data []byte) error {
	n := aws.Int32(int32(number))
	output, err := u.store.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &u.store.bucket, Key: &u.key, UploadId: &u.id, PartNumber: n, Body: bytes.NewReader(data),
	}, u.store.sent...)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts[number] = types.CompletedPart{
		ETag: output.ETag, PartNumber: n, ChecksumCRC32: output.ChecksumCRC32,
		ChecksumCRC32C: output.ChecksumCRC32C, ChecksumCRC64NVME: output.ChecksumCRC64NVME,
	}
	return nil
}

// Complete implements objectstore.Parts.
func (u *upload) Complete(ctx context.Context, count int) error {
	completed := &types.CompletedMultipartUpload{}
	for number := 1; number <= count; number++ {
		completed.Parts = append(completed.Parts, u.parts[number])
	}
	complete := func(condition *string) error {
		_, err := u.store.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &u.store.bucket, Key: &u.key, UploadId: &u.id, MultipartUpload: completed, IfNoneMatch: condition,
		})
		return err
	}
	condition := u.condition()
	err := complete(condition)
	if u.mayDrop(condition, err) {
		err = complete(nil)
	}
	return u.refused(err)
}

// Abort implements objectstore.Parts.
func (u *upload) Abort(ctx context.Context) error {
	_, err := u.store.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &u.store.bucket, Key: &u.key, UploadId: &u.id})
	if err != nil && code(err) == codeNoSuchUpload {
		return nil
	}
	return err
}
