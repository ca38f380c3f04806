// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"bytes"
	"context"
	"strconv"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// upload implements objectstore.Parts.
type upload struct {
	store   *Store
	key     string
	options objectstore.PutOptions
	id      *string
	// proof names the checksum that the store has returned of the whole object.
	proof string

	parts objectstore.StoredParts
}

// forbid makes the store reject to overwrite.
func (u *upload) forbid() *string {
	if u.options.Overwrite {
		return nil
	}
	return oss.Ptr("true")
}

// PutWhole implements objectstore.Parts.
func (u *upload) PutWhole(ctx context.Context, data []byte) error {
	result, err := u.store.client.PutObject(ctx, &oss.PutObjectRequest{
		Bucket: &u.store.bucket, Key: &u.key, Body: bytes.NewReader(data), ContentType: oss.Ptr(u.options.Type()), ForbidOverwrite: u.forbid(),
	})
	if err != nil {
		return err
	}
	return u.compare(ctx, result.HashCRC64, objectstore.ECMA.Of(data))
}

// Begin implements objectstore.Parts.
func (u *upload) Begin(ctx context.Context) error {
	result, err := u.store.client.InitiateMultipartUpload(ctx, &oss.InitiateMultipartUploadRequest{
		Bucket: &u.store.bucket, Key: &u.key, ContentType: oss.Ptr(u.options.Type()), ForbidOverwrite: u.forbid(),
	})
	if err != nil {
		return err
	}
	u.id = result.UploadId
	return nil
}

// PutPart implements objectstore.Parts.
func (u *upload) PutPart(ctx context.Context, number int, data []byte) error {
	sum := objectstore.ECMA.Of(data)
	result, err := u.store.client.UploadPart(ctx, &oss.UploadPartRequest{
		Bucket: &u.store.bucket, Key: &u.key, UploadId: u.id, PartNumber: int32(number), Body: bytes.NewReader(data),
	})
	if err != nil {
		return err
	}
	if got := oss.ToString(result.HashCRC64); got != "" && got != text(sum) {
		return objectstore.Damaged(u.key, objectstore.ChecksumCRC64ECMA, text(sum), got)
	}
	u.parts.Add(number, result.ETag, sum)
	return nil
}

// Complete implements objectstore.Parts.
func (u *upload) Complete(ctx context.Context, count int) error {
	completed := &oss.CompleteMultipartUpload{}
	parts, whole := u.parts.InOrder(count, objectstore.ECMA)
	for _, p := range parts {
		completed.Parts = append(completed.Parts, oss.UploadPart{PartNumber: p.Number, ETag: p.ETag})
	}
	result, err := u.store.client.CompleteMultipartUpload(ctx, &oss.CompleteMultipartUploadRequest{
		Bucket: &u.store.bucket, Key: &u.key, UploadId: u.id, CompleteMultipartUpload: completed, ForbidOverwrite: u.forbid(),
	})
	if err != nil {
		return err
	}
	return u.compare(ctx, result.HashCRC64, whole)
}

// compare looks at the checksum that the store has of an object that is visible now. A store
// that did not return it may still return it on request.
func (u *upload) compare(ctx context.Context, responded *string, want objectstore.Sum) error {
	got := oss.ToString(responded)
	if got == "" && u.options.Prove {
		head, err := u.store.client.HeadObject(ctx, &oss.HeadObjectRequest{Bucket: &u.store.bucket, Key: &u.key})
		if err != nil {
			return nil //nolint:nilerr // it is stored, and not proved: it is read then, which says what is wrong
		}
		got = oss.ToString(head.HashCRC64)
	}
	switch got {
	case "":
		return nil
	case text(want):
		u.proof = objectstore.ChecksumCRC64ECMA
		return nil
	}
	return objectstore.Withdraw(ctx, u.store, u.key, objectstore.Damaged(u.key, objectstore.ChecksumCRC64ECMA, text(want), got))
}

// text is the form in which the store names a sum.
func text(s objectstore.Sum) string { return strconv.FormatUint(s.CRC, 10) }

// Abort implements objectstore.Parts.
func (u *upload) Abort(ctx context.Context) error {
	_, err := u.store.client.AbortMultipartUpload(ctx, &oss.AbortMultipartUploadRequest{Bucket: &u.store.bucket, Key: &u.key, UploadId: u.id})
	if err != nil && code(err) == codeNoSuchUpload {
		return nil
	}
	return err
}
