// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"slices"

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

// ProveFirstWrite is ProveWrite for the only member of a cluster that continues from a snapshot. A snapshot holds the
// alarms of its cluster. Those of members that this cluster never had are disarmed first: CORRUPT rejects every write
// for ever, and NOSPACE every put, although the member that raised them no longer exists. An alarm of the member itself stays.
func (c *Client) ProveFirstWrite(ctx context.Context) error {
	list, err := c.Members(ctx)
	if err != nil {
		return err
	}
	alarms, err := c.Alarms(ctx)
	if err != nil {
		return err
	}
	for _, alarm := range alarms {
		if slices.ContainsFunc(list.Members, func(m Member) bool { return m.ID == alarm.MemberID }) {
			continue
		}
		if _, err := c.Disarm(ctx, alarm); err != nil {
			return err
		}
	}
	return c.ProveWrite(ctx)
}
