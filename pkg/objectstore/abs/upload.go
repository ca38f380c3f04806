// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"bytes"
	"context"
	"crypto/md5" // with which Azure responds; it is to find accidents
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// upload implements objectstore.Parts.
type upload struct {
	store   *Store
	key     string
	client  *blockblob.Client
	options objectstore.PutOptions
	tier    string
	// salt keeps the blocks of two uploads of the same key apart, and says when this upload
	// was begun, in nanoseconds since 1970.
	salt int64
	// proof names the checksum that the store has returned of every byte.
	proof string

	mu     sync.Mutex
	blocks map[int]block
}

// block is one that the store has.
type block struct {
	size int64
	// proved is true if the store has returned the checksum of what was sent.
	proved bool
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
	response, err := u.client.Upload(ctx, body(data), &blockblob.UploadOptions{HTTPHeaders: u.headers(), AccessConditions: u.conditions(), Tier: u.accessTier()})
	if err != nil || len(response.ContentMD5) == 0 {
		return err
	}
	if sent := md5.Sum(data); !bytes.Equal(sent[:], response.ContentMD5) {
		return objectstore.Withdraw(ctx, u.store, u.key, damaged(u.key, objectstore.ChecksumMD5, sent[:], response.ContentMD5))
	}
	u.proof = objectstore.ChecksumMD5
	return nil
}

// damaged says that the store has other bytes than were sent.
func damaged(key, checksum string, sent, got []byte) error {
	return objectstore.Damaged(key, checksum, base64.StdEncoding.EncodeToString(sent), base64.StdEncoding.EncodeToString(got))
}

// Begin implements objectstore.Parts: there is nothing to begin.
func (u *upload) Begin(context.Context) error { return nil }

// PutPart implements objectstore.Parts. The checksum of the block is not sent: what the store
// responds is then what the store has computed.
func (u *upload) PutPart(ctx context.Context, number int, data []byte) error {
	response, err := u.client.StageBlock(ctx, u.block(number), body(data), nil)
	if err != nil {
		return err
	}
	got := response.ContentCRC64
	sent := binary.LittleEndian.AppendUint64(nil, objectstore.NVME.Of(data).CRC)
	if len(got) > 0 && !bytes.Equal(got, sent) {
		return damaged(u.key, objectstore.ChecksumCRC64NVME, sent, got)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.blocks == nil {
		u.blocks = map[int]block{}
	}
	u.blocks[number] = block{size: int64(len(data)), proved: len(got) > 0}
	return nil
}

// Complete implements objectstore.Parts.
func (u *upload) Complete(ctx context.Context, count int) error {
	blocks := make([]string, 0, count)
	proved := true
	for number := 1; number <= count; number++ {
		blocks = append(blocks, u.block(number))
		proved = proved && u.blocks[number].proved
	}
	_, err := u.client.CommitBlockList(ctx, blocks, &blockblob.CommitBlockListOptions{HTTPHeaders: u.headers(), AccessConditions: u.conditions(), Tier: u.accessTier()})
	if err != nil || !proved || !u.options.Prove {
		return err
	}
	return u.compare(ctx, blocks)
}

// compare looks whether the blob is made of exactly these blocks, whose checksums the store has
// responded.
func (u *upload) compare(ctx context.Context, blocks []string) error {
	list, err := u.client.GetBlockList(ctx, blockblob.BlockListTypeCommitted, nil)
	if err != nil {
		return nil //nolint:nilerr // it is stored, and not proved: it is read then, which says what is wrong
	}
	if n := len(list.CommittedBlocks); n != len(blocks) {
		return u.misses(ctx, fmt.Errorf("%d blocks were sent, the blob has %d", len(blocks), n))
	}
	for i, got := range list.CommittedBlocks {
		if ptr.Deref(got.Name, "") != blocks[i] || ptr.Deref(got.Size, 0) != u.blocks[i+1].size {
			return u.misses(ctx, fmt.Errorf("block %d of the blob is not the one that was sent", i+1))
		}
	}
	u.proof = objectstore.ChecksumCRC64NVME
	return nil
}

// misses withdraws a blob that is not made of what was sent.
func (u *upload) misses(ctx context.Context, cause error) error {
	return objectstore.Withdraw(ctx, u.store, u.key, &objectstore.Error{Op: "put", Key: u.key, Kind: objectstore.ErrDamaged, Cause: cause})
}

// Abort implements objectstore.Parts: blocks cannot be deleted without making them a blob
// for a moment, which is left to AbortUploads.
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
