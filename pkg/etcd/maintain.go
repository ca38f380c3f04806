// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// View reads the member list that one member has in memory. The list may be old, and a
// quorum may confirm another list: View is for comparing what members say. Learners reject the request (ErrLearner).
func (c *Client) View(ctx context.Context, e Endpoint) (Membership, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var view Membership
	err := c.pool.call(ctx, c.target, e, "list members", func(ctx context.Context, cc *grpc.ClientConn) error {
		resp, err := pb.NewClusterClient(cc).MemberList(ctx, &pb.MemberListRequest{})
		if err == nil {
			view, err = membershipOf(resp)
		}
		return err
	})
	return view, err
}

// Defragment makes one member write its database again without unused space. It votes
// meanwhile, and responses no reads or writes of its own. That takes as long as the
// database is large, so ctx must have a deadline that allows for it; if ctx ends the
// member goes on all the same.
func (c *Client) Defragment(ctx context.Context, e Endpoint) error {
	return c.pool.call(ctx, c.target, e, "defragment", func(ctx context.Context, cc *grpc.ClientConn) error {
		_, err := pb.NewMaintenanceClient(cc).Defragment(ctx, &pb.DefragmentRequest{})
		return err
	})
}
