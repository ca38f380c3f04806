// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"time"
)

// leaderGrace is how long pick waits for the leader once another voter has answered.
const leaderGrace = 200 * time.Millisecond

// pick returns a voter that knows a leader, the leader itself if it answers soon: it
// needs one round trip less for a linearizable read, and knows how far learners are.
// The error is ErrNoQuorum if a voter answered, ErrUnavailable if none did.
func (c *Client) pick(ctx context.Context, op string) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := c.ask(ctx)
	var candidate *answer
	var grace <-chan time.Time
	var silent, leaderless error
	for {
		select {
		case a, more := <-answers:
			switch {
			case !more && candidate != nil:
				return *candidate, nil
			case !more:
				return answer{}, nobody(op, leaderless, silent)
			case a.err != nil:
				silent = errors.Join(silent, a.err)
			case a.health.Learner:
				silent = errors.Join(silent, &Error{Op: op, Member: a.endpoint.Name, Kind: ErrLearner})
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

// lastSaid returns what a voter has just said that knows a leader, the leader itself if
// it is among them; nil if the endpoints do not tell.
func (c *Client) lastSaid() *answer {
	var follower *answer
	for _, e := range c.target.Endpoints {
		if e.Said == nil || e.Said.Learner || e.Said.Leader == 0 {
			continue
		}
		a := &answer{endpoint: e, health: *e.Said}
		if e.Said.Leader == e.Said.ID {
			return a
		}
		if follower == nil {
			follower = a
		}
	}
	return follower
}

// nobody says why no voter could be picked.
func nobody(op string, leaderless, silent error) error {
	if leaderless != nil {
		return leaderless
	}
	if silent == nil {
		return &Error{Op: op, Kind: ErrUnavailable}
	}
	// Only the text: why one member was silent is not why the call failed.
	return &Error{Op: op, Kind: ErrUnavailable, Cause: errors.New(silent.Error())}
}
