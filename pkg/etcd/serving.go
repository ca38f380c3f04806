// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"net"
	"net/url"
	"time"
)

const (
	// servingStep is the time between two tries to connect, at first; it is what a
	// new member waits for at most after it began to listen.
	servingStep = 25 * time.Millisecond
	// A member that does not listen after seconds is being scheduled, or its image
	// pulled; many of them at once must not keep the processor busy.
	servingStepMax = 200 * time.Millisecond
	servingSlow    = 10 * time.Second
	// servingRejected is the longest time between two tries while connections are taken and
	// calls fail at once, as with a certificate that does not fit: each try is a handshake.
	servingRejected = 2 * time.Second
	// servingDial bounds one try: a packet to an address that is not there yet is
	// lost without a response.
	servingDial = 250 * time.Millisecond
	// servingAsk bounds one question. A member that has no leader yet listens and
	// does not respond; it responds as soon as it can.
	servingAsk = 5 * time.Second
	// endingStep is the time between two questions to a member that is about to end.
	endingStep = 20 * time.Millisecond
)

// WaitServing returns nil as soon as the member at e responds to Status. It needs no other
// probe: it tries to connect until ctx ends, and then returns the last error, which
// matches ErrUnavailable or ErrTimeout.
func (p *Pool) WaitServing(ctx context.Context, t Target, e Endpoint) error {
	client := p.Client(t)
	start := time.Now()
	rejected := servingStep
	for {
		err := knock(ctx, e)
		step := servingStep
		if time.Since(start) > servingSlow {
			step = servingStepMax
		}
		if err == nil {
			askCtx, cancel := context.WithTimeout(ctx, servingAsk)
			_, err = client.Status(askCtx, e)
			cancel()
			if err == nil {
				return nil
			}
			if !errors.Is(err, ErrTimeout) {
				rejected = min(2*rejected, servingRejected)
				step = max(step, rejected)
			}
		} else {
			err = &Error{Op: "wait for member", Member: e.Name, Kind: ErrUnavailable, Cause: err}
		}
		if !pause(ctx, step) {
			return err
		}
	}
}

// WaitEnd returns nil as soon as the member at e does not respond Status any more,
// and the error of ctx if that ends before.
func (p *Pool) WaitEnd(ctx context.Context, t Target, e Endpoint) error {
	client := p.Client(t)
	for client.responses(ctx, e) && pause(ctx, endingStep) {
	}
	return ctx.Err()
}

func (c *Client) responses(ctx context.Context, e Endpoint) bool {
	_, err := c.Status(ctx, e)
	return err == nil
}

// knock tries to connect to e once. That is far cheaper than asking.
func knock(ctx context.Context, e Endpoint) error {
	u, err := url.Parse(e.URL)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{Timeout: servingDial}).DialContext(ctx, "tcp", dialAddress(u, e))
	if err != nil {
		return err
	}
	return conn.Close()
}
