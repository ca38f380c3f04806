// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"time"
)

// leaderGrace is how long pick waits for the leader once another voter has responded.
const leaderGrace = 200 * time.Millisecond

// pick returns a voter that knows a leader, the leader itself if it responds soon: it
// needs one round trip less for a linearizable read, and knows how far learners are.
// The error is ErrNoQuorum if a voter responded, ErrUnavailable if none did.
func (c *Client) pick(ctx context.Context, op string) (response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	responses := c.ask(ctx)
	var candidate *response
	var grace <-chan time.Time
	var unresponsive, leaderless error
	for {
		select {
		case a, more := <-responses:
			switch {
			case !more && candidate != nil:
				return *candidate, nil
			case !more:
				return response{}, none(op, leaderless, unresponsive)
			case a.err != nil:
				unresponsive = errors.Join(unresponsive, a.err)
			case a.health.Learner:
				unresponsive = errors.Join(unresponsive, &Error{Op: op, Member: a.endpoint.Name, Kind: ErrLearner})
			case a.health.Leader == 0:
				leaderless = &Error{Op: op, Member: a.endpoint.Name, Kind: ErrNoQuorum}
			case a.health.Leader == a.health.ID:
				return a, nil
			case candidate == nil:
				candidate = &a
				timer := time.NewTimer(leaderGrace)
				defer timer.Stop()
				grace = timer.C
			}
		case <-grace:
			return *candidate, nil
		}
	}
}

// reportedVoter returns the status of a voter that has just reported a leader, preferably of the
// leader itself; nil if no endpoint has such a status.
func (c *Client) reportedVoter() *response {
	var follower *response
	for _, e := range c.target.Endpoints {
		if e.Status == nil || e.Status.Learner || e.Status.Leader == 0 {
			continue
		}
		a := &response{endpoint: e, health: *e.Status}
		if e.Status.Leader == e.Status.ID {
			return a
		}
		if follower == nil {
			follower = a
		}
	}
	return follower
}

// none says why no voter could be picked.
func none(op string, leaderless, unresponsive error) error {
	if leaderless != nil {
		return leaderless
	}
	if unresponsive == nil {
		return &Error{Op: op, Kind: ErrUnavailable}
	}
	// Only the text: the call did not fail because this member did not respond.
	return &Error{Op: op, Kind: ErrUnavailable, Cause: errors.New(unresponsive.Error())}
}
