// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrGrown means that the database of a member grew too much while a snapshot of it was read.
var ErrGrown = errors.New("the snapshot was read too slowly")

const (
	// growthInterval is how often the size of a database is read while a
	// snapshot of it is read.
	growthInterval = 5 * time.Second
	// growthRoom is how much a small database may always grow meanwhile, in bytes.
	growthRoom = 64 << 20
)

// grownError says from what to what size the database grew.
type grownError struct{ from, to, limit int64 }

// Error implements error.
func (e *grownError) Error() string {
	return fmt.Sprintf("the database of the member grew from %d to %d MiB during the snapshot, and the limit is %d MiB. "+
		"etcd cannot reuse the space of deleted data while a snapshot is open. Read it faster: set compression: Zstd, use a store that is nearer, or write less during backups",
		e.from>>20, e.to>>20, e.limit>>20)
}

// Is makes errors.Is find ErrGrown.
func (e *grownError) Is(target error) bool { return target == ErrGrown }

// growthLimit returns up to which size in bytes the database of a member may grow while a
// snapshot of it is read. An open snapshot keeps every page that it has: what is written
// meanwhile makes the file grow, and at its quota etcd takes no writes. So the file may have
// half as much again as what is in use, and take half of what its quota leaves. What is in
// use does not rise with attempts that failed, so that they do not add up.
func growthLimit(h *MemberHealth) int64 {
	inUse := h.DBSizeInUse
	if inUse <= 0 {
		inUse = h.DBSize // a member that does not tell
	}
	limit := max(inUse+inUse/2+growthRoom, h.DBSize)
	if h.Quota > 0 {
		limit = min(limit, h.DBSize+max(h.Quota-h.DBSize, 0)/2)
	}
	return limit
}

// guard ends the snapshot when the database of the member has grown too much. It asks beside
// the stream, since a reader that waits for its store reads nothing.
func (c *Client) guard(s *Snapshot, limit int64) {
	look := func() {
		if s.ctx.Err() != nil {
			return
		}
		// A member that does not respond shows in the stream.
		if now, err := c.Status(s.ctx, s.Endpoint); err == nil && now.DBSize > limit {
			s.cancel(&grownError{from: s.Health.DBSize, to: now.DBSize, limit: limit})
			return
		}
		c.guard(s, limit)
	}
	c.pool.config.Clock.AfterFunc(growthInterval, func() { go look() })
}

// grown returns why a snapshot was ended by its guard; nil if it was not.
func grown(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrGrown) {
		return cause
	}
	return nil
}
