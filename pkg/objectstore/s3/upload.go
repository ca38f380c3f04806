// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"context"
	"errors"
	"net/http"

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
	// unseen is true if it is unknown whether there is an object.
	unseen bool
	// sums is true if the store has said that it computes the checksum of each part.
	sums bool
	// proof names the checksum that the store has returned of the whole object.
	proof string

	parts objectstore.StoredParts
}

// condition makes the store reject to overwrite.
func (u *upload) condition() *string {
	if u.options.Overwrite {
		return nil
	}
	return aws.String("*")
}

// mayDrop is true if an upload may be tried without its condition: the store has none, and
// Put has looked already.
func (u *upload) mayDrop(condition *string, err error) bool {
	return condition != nil && !u.unseen && isNotImplemented(err)
}

// rejected explains the error of an upload whose condition the store does not have.
func (u *upload) rejected(err error) error {
	if !u.unseen || !isNotImplemented(err) {
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
	var output *s3.PutObjectOutput
	sum := objectstore.NVME.Of(data)
	put := func(condition *string) (err error) {
		input := &s3.PutObjectInput{
			Bucket: &u.store.bucket, Key: &u.key, Body: bytes.NewReader(data), ContentType: aws.String(u.options.Type()),
			IfNoneMatch: condition, ServerSideEncryption: types.ServerSideEncryption(u.store.encryption),
			SSEKMSKeyId: u.store.key(), StorageClass: types.StorageClass(u.store.class),
		}
		if u.store.aws {
			input.ChecksumCRC64NVME = aws.String(sum.Base64())
		}
		output, err = u.store.client.PutObject(ctx, input, u.store.sent...)
		return err
	}
	condition := u.condition()
	err := put(condition)
	if u.mayDrop(condition, err) {
		err = put(nil) // what Put has looked for is all that this store can do
	}
	if err != nil {
		return u.rejected(err)
	}
	return u.compare(ctx, output.ChecksumCRC64NVME, output.ChecksumType, sum)
}

// Begin implements objectstore.Parts. It asks for a checksum of the whole object, which AWS
// and newer stores of other makers compute. Older ones reject, or do not say that they will:
// then nothing is requested.
func (u *upload) Begin(ctx context.Context) error {
	input := &s3.CreateMultipartUploadInput{
		Bucket: &u.store.bucket, Key: &u.key, ContentType: aws.String(u.options.Type()),
		ServerSideEncryption: types.ServerSideEncryption(u.store.encryption),
		SSEKMSKeyId:          u.store.key(), StorageClass: types.StorageClass(u.store.class),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme, ChecksumType: types.ChecksumTypeFullObject,
	}
	output, err := u.store.client.CreateMultipartUpload(ctx, input)
	if err == nil {
		u.id = aws.ToString(output.UploadId)
		u.sums = output.ChecksumAlgorithm == types.ChecksumAlgorithmCrc64nvme && output.ChecksumType == types.ChecksumTypeFullObject
	}
	switch {
	case err == nil && u.sums:
		return nil
	case err == nil:
		// Whether this upload must be completed with checksums is not known.
		// It has no parts yet, so credentials that may not abort it leave nothing that matters.
		if err := u.Abort(ctx); err != nil && !errors.Is(failed("put", u.key, err), objectstore.ErrDenied) {
			return err
		}
	case u.store.aws || !mayBeUnknown(err):
		return err
	}
	input.ChecksumAlgorithm, input.ChecksumType = "", ""
	if output, err = u.store.client.CreateMultipartUpload(ctx, input); err != nil {
		return err
	}
	u.id = aws.ToString(output.UploadId)
	return nil
}

// mayBeUnknown is true of an error by which a store may say that it does not know a header.
func mayBeUnknown(err error) bool {
	return isNotImplemented(err) || (status(err) == http.StatusBadRequest && kinds[code(err)] == nil)
}

// PutPart implements objectstore.Parts.
func (u *upload) PutPart(ctx context.Context, number int, data []byte) error {
	sum := objectstore.NVME.Of(data)
	input := &s3.UploadPartInput{
		Bucket: &u.store.bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(int32(number)), Body: bytes.NewReader(data),
	}
	sent := u.store.sent
	if u.sums {
		input.ChecksumCRC64NVME, sent = aws.String(sum.Base64()), u.store.summed
	}
	output, err := u.store.client.UploadPart(ctx, input, sent...)
	if err != nil {
		return err
	}
	if got := aws.ToString(output.ChecksumCRC64NVME); got != "" && got != sum.Base64() {
		return objectstore.Damaged(u.key, objectstore.ChecksumCRC64NVME, sum.Base64(), got)
	}
	u.parts.Add(number, output.ETag, sum)
	return nil
}

// Complete implements objectstore.Parts. The checksum of the whole object is not sent: what
// the store responds is then what the store has computed.
func (u *upload) Complete(ctx context.Context, count int) error {
	completed := &types.CompletedMultipartUpload{}
	parts, whole := u.parts.InOrder(count, objectstore.NVME)
	for _, p := range parts {
		done := types.CompletedPart{ETag: p.ETag, PartNumber: aws.Int32(p.Number)}
		if u.sums {
			done.ChecksumCRC64NVME = aws.String(p.Sum.Base64())
		}
		completed.Parts = append(completed.Parts, done)
	}
	input := &s3.CompleteMultipartUploadInput{Bucket: &u.store.bucket, Key: &u.key, UploadId: &u.id, MultipartUpload: completed}
	if u.sums {
		input.ChecksumType, input.MpuObjectSize = types.ChecksumTypeFullObject, aws.Int64(whole.Size)
	}
	var output *s3.CompleteMultipartUploadOutput
	complete := func(condition *string) (err error) {
		input.IfNoneMatch = condition
		output, err = u.store.client.CompleteMultipartUpload(ctx, input)
		return err
	}
	condition := u.condition()
	err := complete(condition)
	if u.mayDrop(condition, err) {
		err = complete(nil)
	}
	if err != nil {
		return u.rejected(err)
	}
	return u.compare(ctx, output.ChecksumCRC64NVME, output.ChecksumType, whole)
}

// compare looks at the checksum that the store has of an object that is visible now. A store
// that did not return it may still return it on request.
func (u *upload) compare(ctx context.Context, responded *string, kind types.ChecksumType, want objectstore.Sum) error {
	if responded == nil && u.options.Prove {
		head, err := u.store.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &u.store.bucket, Key: &u.key, ChecksumMode: types.ChecksumModeEnabled})
		if err != nil {
			return nil //nolint:nilerr // it is stored, and not proved: it is read then, which says what is wrong
		}
		responded, kind = head.ChecksumCRC64NVME, head.ChecksumType
	}
	switch {
	case aws.ToString(responded) == "" || kind == types.ChecksumTypeComposite:
		return nil
	case *responded != want.Base64():
		return objectstore.Withdraw(ctx, u.store, u.key, objectstore.Damaged(u.key, objectstore.ChecksumCRC64NVME, want.Base64(), *responded))
	}
	u.proof = objectstore.ChecksumCRC64NVME
	return nil
}

// Abort implements objectstore.Parts.
func (u *upload) Abort(ctx context.Context) error {
	_, err := u.store.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &u.store.bucket, Key: &u.key, UploadId: &u.id})
	if err != nil && code(err) == codeNoSuchUpload {
		return nil
	}
	return err
}
