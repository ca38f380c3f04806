// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"time"

	"github.com/Masterminds/semver/v3"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

const (
	// firstReadTimeout bounds the first try of a linearizable read; each further try
	// gets twice as long, for a cluster that is slow and not stuck.
	firstReadTimeout = time.Second
	readRetryDelay   = 50 * time.Millisecond
	// readGrace is how long a read waits for one voter before all others are requested too.
	readGrace = 300 * time.Millisecond
)

// Members reads the member list through a quorum: it contains every change that was
// acknowledged before the call. Elections and members that come and go are waited
// for until ctx ends; the error is then ErrNoQuorum if a voter could be reached, and
// ErrUnavailable if not.
func (c *Client) Members(ctx context.Context) (Membership, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var last error
	timeout := firstReadTimeout
	voter := c.reportedVoter()
	for {
		m, err := c.tryMembers(ctx, voter, timeout)
		voter = nil
		if err == nil {
			return m, nil
		}
		// The try that ctx cut short found no member; the earlier error is more useful.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if !isPassing(err) || !pause(ctx, readRetryDelay) {
			return Membership{}, last
		}
		timeout *= 2
	}
}

// isPassing is true for errors that may go away by themselves.
func isPassing(err error) bool {
	return isAny(err, ErrNoQuorum, ErrUnavailable, ErrLearner)
}

// tryMembers reads the member list from a voter; from one that is requested first if
// voter is nil. Which voter responds does not matter for the result: each one confirms the
// read with a quorum. A voter whose disk takes no writes still responds with its status, and
// completes no read: after readGrace every other voter is requested too, and the first list
// counts. The error is that of the voter.
func (c *Client) tryMembers(ctx context.Context, voter *response, timeout time.Duration) (Membership, error) {
	if voter == nil {
		picked, err := c.pick(ctx, listMembers)
		if err != nil {
			return Membership{}, err
		}
		voter = &picked
	}
	tryCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type result struct {
		from       string
		membership Membership
		err        error
	}
	results := make(chan result, len(c.target.Endpoints)+1)
	read := func(from response) {
		m, err := c.readMembers(tryCtx, from)
		results <- result{from.endpoint.Name, m, err}
	}
	go read(*voter)
	grace := time.NewTimer(readGrace)
	defer grace.Stop()
	var others <-chan response
	var failure error
	for reading := 1; reading > 0; {
		select {
		case r := <-results:
			if r.err == nil {
				return r.membership, nil
			}
			if r.from == voter.endpoint.Name {
				failure = r.err
			}
			reading--
		case <-grace.C:
			others = c.ask(tryCtx)
		case other, more := <-others:
			switch {
			case !more:
				others = nil
			case other.err == nil && !other.health.Learner && other.health.Leader != 0 && other.endpoint.Name != voter.endpoint.Name:
				reading++
				go read(other)
			}
		}
	}
	var e *Error
	if errors.As(failure, &e) && errors.Is(e.Kind, ErrTimeout) && !errors.Is(ctx.Err(), context.Canceled) {
		// The voter responded a moment ago; what it waits for is the others.
		e.Kind = ErrNoQuorum
	}
	return Membership{}, failure
}

// listMembers is the operation of Members in errors.
const listMembers = "list members"

// readMembers reads the member list through a quorum, at one voter.
func (c *Client) readMembers(ctx context.Context, voter response) (membership Membership, err error) {
	err = c.pool.call(ctx, c.target, voter.endpoint, listMembers, func(ctx context.Context, cc *grpc.ClientConn) error {
		if !listsLinearizably(voter.health.Version) {
			// Such a server responds from memory. It is the same server that has to
			// catch up for a read of any key first, as that is the same connection.
			if _, err := pb.NewKVClient(cc).Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true}); err != nil {
				return err
			}
		}
		resp, err := pb.NewClusterClient(cc).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
		if err == nil {
			membership, err = membershipOf(resp)
		}
		return err
	})
	return membership, err
}

// OwnMembers returns the list that one member has applied itself. The others may know a
// newer one; it responds without a quorum, unless it is a learner. Without a deadline in
// ctx the time-out of the pool for one member holds.
func (c *Client) OwnMembers(ctx context.Context, e Endpoint) (Membership, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.pool.config.StatusTimeout)
		defer cancel()
	}
	var membership Membership
	err := c.pool.call(ctx, c.target, e, "list own members", func(ctx context.Context, cc *grpc.ClientConn) error {
		resp, err := pb.NewClusterClient(cc).MemberList(ctx, &pb.MemberListRequest{Linearizable: false})
		if err == nil {
			membership, err = membershipOf(resp)
		}
		return err
	})
	return membership, err
}

// listsLinearizably is true for servers that heed MemberListRequest.Linearizable.
// Older ones ignore it. A version that cannot be read counts as old, which costs one
// more read.
func listsLinearizably(version string) bool {
	v, err := semver.NewVersion(version)
	return err == nil && (v.Major() > 3 || (v.Major() == 3 && v.Minor() >= 5))
}
