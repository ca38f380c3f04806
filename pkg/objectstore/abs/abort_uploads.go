// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// uploadMark in the metadata of an empty blob says that AbortUploads has made it to delete it.
const uploadMark = "etcdoperatorswept"

// AbortUploads implements objectstore.Store. Azure keeps uncommitted blocks
// for a week, and counts them as stored. It lists them as a blob without content
// on request, but deletes them only with a blob. So such a blob is made, empty, of a
// key that has none, and deleted at once. When an upload was begun stands in the names of its
// blocks: what is young, and what others have sent, stays. Blocks that wait behind a blob
// that is there go when that is written next.
func (s *Store) AbortUploads(ctx context.Context, prefix string, ours func(key string) bool, before time.Time) (int, error) {
	aborted := 0
	pages := s.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: &prefix, Include: container.ListBlobsInclude{UncommittedBlobs: true, Metadata: true},
	})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if bloberror.HasCode(err, bloberror.UnsupportedQueryParameter, bloberror.InvalidQueryParameterValue) {
			return aborted, nil // a kind of account that does not list them: they go after a week
		}
		if err != nil {
			return aborted, failed("abort uploads", prefix, err)
		}
		for _, item := range page.Segment.BlobItems {
			if item.Name == nil || item.Properties == nil || ptr.Deref(item.Properties.ContentLength, 0) != 0 || directory(item) || !ours(*item.Name) {
				continue
			}
			gone, err := s.discard(ctx, item, before)
			if err != nil {
				return aborted, failed("abort uploads", *item.Name, err)
			}
			if gone {
				aborted++
			}
		}
	}
	return aborted, nil
}

// discard deletes what an interrupted upload has left, and says whether it did.
func (s *Store) discard(ctx context.Context, item *container.BlobItem, before time.Time) (bool, error) {
	client := s.client.NewBlockBlobClient(*item.Name)
	etag := quoted(item.Properties.ETag) // one that is not committed has none
	if !isMarked(item.Metadata) {
		abandoned, err := abandoned(ctx, client, before)
		if err != nil || !abandoned {
			return false, err
		}
		// This fails if another program has made a blob of it meanwhile.
		made, err := client.CommitBlockList(ctx, nil, &blockblob.CommitBlockListOptions{
			Metadata:         map[string]*string{uploadMark: ptr.To("true")},
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: ptr.To(azcore.ETagAny)}},
		})
		if err != nil {
			return false, unless(objectstore.ErrExists, *item.Name, err)
		}
		etag = made.ETag
	}
	// Only what was made here is deleted, not what another program has written over it.
	_, err := client.Delete(ctx, &blob.DeleteOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: etag}},
	})
	if err != nil {
		return false, unless(objectstore.ErrExists, *item.Name, unless(objectstore.ErrNotFound, *item.Name, err))
	}
	return true, nil
}

// quoted gives back what a listing leaves out of a tag and a condition has.
func quoted(etag *azcore.ETag) *azcore.ETag {
	if etag == nil || strings.HasPrefix(string(*etag), `"`) {
		return etag
	}
	return ptr.To(`"` + *etag + `"`)
}

// abandoned is true if nothing but blocks is there, and all of them are of uploads of this
// package that were begun before this time.
func abandoned(ctx context.Context, client *blockblob.Client, before time.Time) (bool, error) {
	list, err := client.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	if err != nil {
		return false, unless(objectstore.ErrNotFound, client.URL(), err)
	}
	if len(list.CommittedBlocks) > 0 || len(list.UncommittedBlocks) == 0 {
		return false, nil
	}
	for _, block := range list.UncommittedBlocks {
		if at, ours := begunAt(ptr.Deref(block.Name, "")); !ours || !at.Before(before) {
			return false, nil
		}
	}
	return true, nil
}

// unless returns err, but nil if it is of this kind.
func unless(kind error, key string, err error) error {
	if errors.Is(failed("abort uploads", key, err), kind) {
		return nil
	}
	return err
}

// isMarked is true for a blob that AbortUploads has made and not deleted, because it was killed. The
// names of metadata have no case.
func isMarked(metadata map[string]*string) bool {
	for name := range metadata {
		if strings.EqualFold(name, uploadMark) {
			return true
		}
	}
	return false
}
