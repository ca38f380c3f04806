// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// outage is how long the API may not respond before Follow ends.
const outage = time.Minute

// ErrOutage means that the API did not respond for too long.
var ErrOutage = errors.New("the API does not respond")

// Follow calls look again and again until it reports an end or an error. Errors of an API that
// does not respond for a moment are no end. A timeout of 0 is no time limit.
func Follow(ctx context.Context, line *Line, every, timeout time.Duration, look func(context.Context) (Step, bool, error)) error {
	limit, cancel := withTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var downSince time.Time
	var step Step
	for {
		next, done, err := look(limit)
		switch {
		case err == nil && done:
			return nil
		case err == nil:
			step, downSince = next, time.Time{}
		case limit.Err() != nil:
			return ended(ctx, timeout, step)
		case !IsTransient(err):
			return err
		default:
			if downSince.IsZero() {
				downSince = time.Now()
			}
			if time.Since(downSince) > outage {
				return fmt.Errorf("%w for %v: %w", ErrOutage, outage, err)
			}
			step.Text = "the API does not respond; trying again"
		}
		line.Show(step)
		select {
		case <-limit.Done():
			return ended(ctx, timeout, step)
		case <-ticker.C:
		}
	}
}

func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// ended returns why nothing is followed any more: the user or the time limit.
func ended(ctx context.Context, timeout time.Duration, at Step) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text := fmt.Sprintf("not done within %v", timeout)
	if at.Text != "" {
		text += ": " + at.Text
	}
	return failure.TimedOut(text)
}

// IsTransient is true for errors that another attempt may not meet.
func IsTransient(err error) bool {
	var timeout net.Error
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsInternalError(err) || utilnet.IsConnectionRefused(err) ||
		utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || (errors.As(err, &timeout) && timeout.Timeout())
}
