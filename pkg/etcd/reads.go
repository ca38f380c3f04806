// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// FailedReads asks every endpoint, at the same time, for a linearizable read of no key. It
// returns why the read did not end, by the name of the endpoint; a voter that serves is not
// in the result. A voter responds to Status and keeps its leader while its disk does not
// take a write, because both come from its memory. Only this read needs what the voter
// writes: the voter must confirm the read with a quorum, and apply everything that was
// committed before.
//
// A read that etcd rejects for another reason, such as its own authorization, has ended.
// Learners serve no such read. Without a deadline in ctx the pool's
// time-out for calls holds.
func (c *Client) FailedReads(ctx context.Context) map[string]error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	errs := make([]error, len(c.target.Endpoints))
	var group sync.WaitGroup
	for i, e := range c.target.Endpoints {
		group.Go(func() { errs[i] = c.read(ctx, e) })
	}
	group.Wait()
	failed := map[string]error{}
	for i, e := range c.target.Endpoints {
		if isAny(errs[i], ErrTimeout, ErrNoQuorum, ErrUnavailable) {
			failed[e.Name] = errs[i]
		}
	}
	return failed
}

func (c *Client) read(ctx context.Context, e Endpoint) error {
	return c.pool.call(ctx, c.target, e, "linearizable read", func(ctx context.Context, cc *grpc.ClientConn) error {
		_, err := pb.NewKVClient(cc).Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
		return err
	})
}
