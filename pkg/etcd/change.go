// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// Changes of the membership are sent once, to one voter. After an error for which
// Rejected is false it is not known whether the change happened: read the member list
// before the next one. A proposal that is lost in a change of leaders gets
// no response, so a context of a few seconds is better than a long one.

// AddLearner adds a member that does not vote. Errors: ErrMemberExists,
// ErrTooManyLearners, ErrUnhealthy, and those of the transport.
func (c *Client) AddLearner(ctx context.Context, peerURL string) (Member, error) {
	return c.add(ctx, peerURL, true)
}

// AddVoter adds a member that votes at once, for servers before 3.4. Until it has
// started it counts as a failed member. Errors as for AddLearner.
func (c *Client) AddVoter(ctx context.Context, peerURL string) (Member, error) {
	return c.add(ctx, peerURL, false)
}

func (c *Client) add(ctx context.Context, peerURL string, learner bool) (Member, error) {
	var added Member
	err := c.change(ctx, "add member", func(ctx context.Context, cc *grpc.ClientConn) error {
		resp, err := pb.NewClusterClient(cc).MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{peerURL}, IsLearner: learner})
		if err == nil && resp.Member != nil {
			if err = checkMember(resp.Member); err == nil {
				added = memberOf(resp.Member)
			}
		}
		return err
	})
	return added, err
}

// Promote makes a learner a voter. Errors: ErrLearnerNotReady, ErrNotLearner,
// ErrMemberNotFound, ErrUnhealthy, and those of the transport.
func (c *Client) Promote(ctx context.Context, id uint64) error {
	return c.change(ctx, "promote member", func(ctx context.Context, cc *grpc.ClientConn) error {
		_, err := pb.NewClusterClient(cc).MemberPromote(ctx, &pb.MemberPromoteRequest{ID: id})
		return err
	})
}

// Remove takes a member out of the cluster permanently. Errors: ErrMemberNotFound,
// ErrUnhealthy, and those of the transport.
func (c *Client) Remove(ctx context.Context, id uint64) error {
	return c.change(ctx, "remove member", func(ctx context.Context, cc *grpc.ClientConn) error {
		_, err := pb.NewClusterClient(cc).MemberRemove(ctx, &pb.MemberRemoveRequest{ID: id})
		return err
	})
}

// moveTry bounds one try to hand over. raft ends a hand-over after an election
// time-out without a message; the server would wait until the deadline of the request.
const moveTry = 2 * time.Second

// MoveLeader makes the leader hand over to the voter with the ID to, and waits until
// that leads; nil if it leads already. The leader must be among the endpoints and
// respond. Errors: ErrNotLeader, ErrBadTransferee, ErrTimeout, and those of the
// transport.
func (c *Client) MoveLeader(ctx context.Context, to uint64) error {
	const op = "move leader"
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	for {
		voter, err := c.pick(ctx, op)
		if err != nil {
			return err
		}
		if voter.health.Leader == to {
			return nil
		}
		tryCtx, cancel := context.WithTimeout(ctx, moveTry)
		err = c.pool.call(tryCtx, c.target, voter.endpoint, op, func(ctx context.Context, cc *grpc.ClientConn) error {
			_, err := pb.NewMaintenanceClient(cc).MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: to})
			return err
		})
		cancel()
		if !errors.Is(err, ErrTimeout) || ctx.Err() != nil {
			return err
		}
	}
}

// change sends something to a voter, the leader if possible, exactly once.
func (c *Client) change(ctx context.Context, op string, f func(context.Context, *grpc.ClientConn) error) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	voter, err := c.pick(ctx, op)
	if err != nil {
		return err
	}
	return c.pool.call(ctx, c.target, voter.endpoint, op, f)
}
