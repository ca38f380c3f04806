// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// padders is how many entries are under way at the same time: etcd writes what comes
// together to its disk together.
const padders = 64

// Pad has the cluster append up to n entries to its log that change nothing, and returns
// nil if there was at least one: each revokes a lease that cannot exist. It ends when ctx
// does. Errors: ErrNoQuorum, ErrUnavailable, and those of the transport.
func (c *Client) Pad(ctx context.Context, n int) error {
	return c.change(ctx, "pad the log", func(ctx context.Context, cc *grpc.ClientConn) error {
		client := pb.NewLeaseClient(cc)
		var group sync.WaitGroup
		var begun, done atomic.Int64
		var failed atomic.Pointer[error]
		for range padders {
			group.Go(func() {
				for begun.Add(1) <= int64(n) && failed.Load() == nil {
					// No lease has the ID 0.
					_, err := client.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: 0})
					if err != nil && status.Code(err) != codes.NotFound {
						failed.Store(&err)
						return
					}
					done.Add(1)
				}
			})
		}
		group.Wait()
		if err := failed.Load(); err != nil && done.Load() == 0 {
			return fmt.Errorf("no entry was appended: %w", *err)
		}
		return nil
	})
}
