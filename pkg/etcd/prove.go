// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// proofTTL is how long the lease of a proof lives if it cannot be revoked, in seconds.
const proofTTL = 60

// ProveWrite makes the cluster commit a write to its database and returns nil if it was
// applied. The write is a lease without keys, which is revoked at once, so clients see
// neither a key nor a new revision. A database that is over its quota commits no
// write; that it says so through a quorum is proof enough. Errors: ErrNoQuorum,
// ErrUnavailable, and those of the transport.
func (c *Client) ProveWrite(ctx context.Context) error {
	err := c.change(ctx, "prove a write", func(ctx context.Context, cc *grpc.ClientConn) error {
		client := pb.NewLeaseClient(cc)
		granted, err := client.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: proofTTL})
		if err != nil {
			return err
		}
		_, err = client.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: granted.ID})
		return err
	})
	if errors.Is(err, ErrNoSpace) {
		return nil
	}
	return err
}
