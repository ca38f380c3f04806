// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"k8s.io/utils/clock"
)

const (
	// SnapshotTrailer is the size in bytes of the hash at the end of every snapshot:
	// the SHA-256 of all before it.
	SnapshotTrailer = 32
	// snapshotLag is how many raft entries a member may be behind the others and
	// still be among the first to be requested a snapshot.
	snapshotLag = 1000
	// revisionTimeout bounds the read through a quorum that precedes a snapshot; a
	// member without one is requested what it has.
	revisionTimeout = 3 * time.Second
)

// ErrStalled means that a stream was open and nothing came for too long.
var ErrStalled = errors.New("etcd sent nothing for too long")

// Snapshot is a stream of the database of one member, as etcdutl restores it. Read
// returns io.EOF only after all of it; the reader checks the trailer. Close it.
type Snapshot struct {
	Endpoint Endpoint
	Health   MemberHealth
	// Revision of the key space when the stream began: every write up to it is in
	// the snapshot. Confirmed tells whether a quorum has said so, that is, whether
	// every write that was acknowledged before is among them.
	Revision  int64
	Confirmed bool
	// DataDiffers is true if etcd reported that the data of its members differs. Which member is right is then not known:
	// the alarm may name the right one. A quorum confirms the revision all the same.
	DataDiffers bool

	stream   pb.Maintenance_SnapshotClient
	cancel   context.CancelCauseFunc
	stall    time.Duration
	watchdog clock.Timer
	ctx      context.Context //nolint:containedctx // a reader has no context of its own
	release  func(good bool)
	rest     []byte
	err      error
	received int64
	total    int64
}

// SnapshotSources returns the members to ask for a snapshot, the best first. Voters that are not
// behind and follow a leader come first, followers before the leader, then the others by how much
// they have. A learner may have hardly any data, so it is left out unless it is the only member
// of the target, which a recovery has chosen. Members that do not respond, and those that have
// found their data corrupt, are left out, too. The error is ErrUnavailable or ErrCorrupt if no
// member remains.
func (c *Client) SnapshotSources(ctx context.Context) ([]Endpoint, error) {
	const op = "find a member to take a snapshot of"
	var candidates []response
	var unresponsive, corrupt error
	var newest uint64
	for a := range c.ask(ctx) {
		switch {
		case a.err != nil:
			unresponsive = errors.Join(unresponsive, a.err)
		case a.health.Learner && len(c.target.Endpoints) > 1:
			unresponsive = errors.Join(unresponsive, &Error{Op: op, Member: a.endpoint.Name, Kind: ErrLearner})
		case slices.Contains(a.health.Alarms, Alarm{MemberID: a.health.ID, Type: AlarmCorrupt}):
			corrupt = &Error{Op: op, Member: a.endpoint.Name, Kind: ErrCorrupt}
		default:
			newest = max(newest, a.health.Progress())
			candidates = append(candidates, a)
		}
	}
	switch {
	case len(candidates) > 0:
	case corrupt != nil:
		return nil, corrupt
	default:
		return nil, none(op, nil, unresponsive)
	}
	order := func(a response) int {
		switch {
		case a.health.Progress()+snapshotLag < newest, a.health.Leader == 0:
			return 2
		case a.health.Leader == a.health.ID:
			return 1
		default:
			return 0
		}
	}
	slices.SortFunc(candidates, func(a, b response) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(b.health.Progress(), a.health.Progress()),
			cmp.Compare(a.endpoint.URL, b.endpoint.URL))
	})
	var sources []Endpoint
	for _, a := range candidates {
		sources = append(sources, a.endpoint)
	}
	return sources, nil
}

// Snapshot opens a stream of the database of one member. The stream ends with ErrStalled if
// the member sends nothing for the time stall; a slow reader does not count. An open stream
// keeps the member from using the space of deleted data again, so the stream ends with
// ErrGrown when the database has grown too much meanwhile.
func (c *Client) Snapshot(ctx context.Context, e Endpoint, stall time.Duration) (*Snapshot, error) {
	return c.snapshot(ctx, e, stall, c.revision)
}

// SurvivorSnapshot is Snapshot of a member whose quorum is known to be lost, so that none
// is waited for.
func (c *Client) SurvivorSnapshot(ctx context.Context, e Endpoint, stall time.Duration) (*Snapshot, error) {
	return c.snapshot(ctx, e, stall, func(ctx context.Context, e Endpoint) (int64, bool, error) {
		revision, err := c.memberRevision(ctx, e, true)
		return revision, false, err
	})
}

func (c *Client) snapshot(ctx context.Context, e Endpoint, stall time.Duration,
	revision func(context.Context, Endpoint) (int64, bool, error),
) (*Snapshot, error) {
	const op = "snapshot"
	s := &Snapshot{Endpoint: e, stall: stall}
	var err error
	if s.Health, err = c.Status(ctx, e); err != nil {
		return nil, err
	}
	c.TellAlarms(ctx, &s.Health)
	s.DataDiffers = s.Health.hasAlarm(AlarmCorrupt)
	if s.Revision, s.Confirmed, err = revision(ctx, e); err != nil {
		return nil, err
	}
	conn, err := c.pool.acquire(c.target, e)
	if err != nil {
		return nil, wrap(op, e.Name, err)
	}
	s.release = func(good bool) { c.pool.release(conn, good) }
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.watchdog = c.pool.config.Clock.AfterFunc(stall, func() { s.cancel(ErrStalled) })
	if err = c.pool.identify(s.ctx, conn, c.target, e); err == nil {
		s.stream, err = pb.NewMaintenanceClient(conn.cc).Snapshot(s.ctx, &pb.SnapshotRequest{})
	}
	if err == nil {
		err = s.receive()
	}
	s.watchdog.Stop() // it waits for etcd, not for a reader
	if err != nil {
		err = s.fail(err)
		_ = s.Close()
		return nil, err
	}
	c.guard(s, growthLimit(&s.Health))
	return s, nil
}

// revision reads the revision of one member: through a quorum if there is one.
func (c *Client) revision(ctx context.Context, e Endpoint) (revision int64, confirmed bool, err error) {
	quorumCtx, cancel := context.WithTimeout(ctx, revisionTimeout)
	defer cancel()
	if revision, err = c.memberRevision(quorumCtx, e, false); err == nil {
		return revision, true, nil
	} else if errors.Is(err, ErrDenied) {
		return 0, false, err
	}
	revision, err = c.memberRevision(ctx, e, true)
	return revision, false, err
}

// memberRevision reads the revision of one member, if serializable is true without
// asking the others.
func (c *Client) memberRevision(ctx context.Context, e Endpoint, serializable bool) (revision int64, err error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	err = c.pool.call(ctx, c.target, e, "read the revision", func(ctx context.Context, cc *grpc.ClientConn) error {
		resp, err := pb.NewKVClient(cc).Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true, Serializable: serializable})
		if err == nil {
			revision = resp.Header.GetRevision()
		}
		return err
	})
	return revision, err
}

// Size is how many bytes the stream will have in all.
func (s *Snapshot) Size() int64 { return s.total }

// Read implements io.Reader.
func (s *Snapshot) Read(p []byte) (int, error) {
	for len(s.rest) == 0 && s.err == nil {
		if err := s.await(); err != nil {
			s.err = s.fail(err)
		}
	}
	if len(s.rest) == 0 {
		return 0, s.err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// await receives the next message, for the time stall at most. Once that time was over,
// messages that are still under way are not read: the stream has ended permanently.
func (s *Snapshot) await() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.watchdog.Reset(s.stall)
	defer s.watchdog.Stop()
	return s.receive()
}

// receive waits for the next message.
func (s *Snapshot) receive() error {
	resp, err := s.stream.Recv()
	if err != nil {
		return err
	}
	s.rest = resp.GetBlob()
	if s.total == 0 {
		// What remains is counted without the hash that ends the stream.
		s.total = int64(len(s.rest)) + int64(resp.GetRemainingBytes()) + SnapshotTrailer
	}
	s.received += int64(len(s.rest))
	return nil
}

// fail says why the stream ended; its proper end stays io.EOF.
func (s *Snapshot) fail(err error) error {
	switch {
	case errors.Is(err, io.EOF) && s.received == s.total:
		return io.EOF
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%d of %d bytes came: %w", s.received, s.total, io.ErrUnexpectedEOF)
	case grown(s.ctx) != nil:
		return &Error{Op: "snapshot", Member: s.Endpoint.Name, Kind: ErrGrown, Cause: grown(s.ctx)}
	case errors.Is(context.Cause(s.ctx), ErrStalled):
		return &Error{Op: "snapshot", Member: s.Endpoint.Name, Kind: ErrTimeout, Cause: fmt.Errorf("%w: %s", ErrStalled, s.stall)}
	}
	return wrap("snapshot", s.Endpoint.Name, err)
}

// Close ends the stream.
func (s *Snapshot) Close() error {
	s.watchdog.Stop()
	s.cancel(nil)
	if s.release != nil {
		s.release(errors.Is(s.err, io.EOF))
		s.release = nil
	}
	return nil
}
