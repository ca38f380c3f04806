// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/protoadapt"
)

// Client asks the members of one cluster. It has nothing to close: its connections
// belong to the pool.
type Client struct {
	pool   *Pool
	target Target
}

// Client returns a client for a cluster.
func (p *Pool) Client(target Target) *Client { return &Client{pool: p, target: target} }

// Status asks one member about itself. The member asks no other member, so it responds
// without a quorum and as a learner too. Without a deadline in ctx the time-out of the pool
// for one member holds.
func (c *Client) Status(ctx context.Context, e Endpoint) (MemberHealth, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.pool.config.StatusTimeout)
		defer cancel()
	}
	var health MemberHealth
	err := c.pool.call(ctx, c.target, e, "status", func(ctx context.Context, cc *grpc.ClientConn) error {
		var from peer.Peer
		resp, err := pb.NewMaintenanceClient(cc).Status(ctx, &pb.StatusRequest{}, grpc.Peer(&from))
		if err == nil {
			health = healthOf(resp)
			health.CertificateExpiry = expiryOf(&from)
		}
		return err
	})
	return health, err
}

// Statuses asks all members about themselves at the same time. The result has an
// entry for the name of each endpoint. None takes longer than the pool's time-out
// for one member, whatever happens to the others; the alarms of members before 3.4 may
// take a little more.
func (c *Client) Statuses(ctx context.Context) map[string]StatusResult {
	results := make(map[string]StatusResult, len(c.target.Endpoints))
	var responses []response
	for a := range c.ask(ctx) {
		responses = append(responses, a)
	}
	var said []*MemberHealth
	for i := range responses {
		if responses[i].err == nil {
			said = append(said, &responses[i].health)
		}
	}
	c.TellAlarms(ctx, said...)
	for _, a := range responses {
		results[a.endpoint.Name] = StatusResult{Health: a.health, Err: a.err}
	}
	return results
}

// response is what one endpoint said about itself.
type response struct {
	endpoint Endpoint
	health   MemberHealth
	err      error
}

// ask asks all endpoints for their status. The channel has room for all responses and
// is closed after the last one, so a reader may stop at any time.
func (c *Client) ask(ctx context.Context) <-chan response {
	responses := make(chan response, len(c.target.Endpoints))
	done := make(chan struct{}, len(c.target.Endpoints))
	for _, e := range c.target.Endpoints {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, c.pool.config.StatusTimeout)
			defer cancel()
			health, err := c.Status(ctx, e)
			responses <- response{endpoint: e, health: health, err: err}
			done <- struct{}{}
		}()
	}
	go func() {
		for range c.target.Endpoints {
			<-done
		}
		close(responses)
	}()
	return responses
}

const (
	// firstReadTimeout bounds the first try of a linearizable read; each further try
	// gets twice as long, for a cluster that is slow and not stuck.
	firstReadTimeout = time.Second
	readRetryDelay   = 50 * time.Millisecond
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
// read with a quorum.
func (c *Client) tryMembers(ctx context.Context, voter *response, timeout time.Duration) (Membership, error) {
	const op = "list members"
	if voter == nil {
		picked, err := c.pick(ctx, op)
		if err != nil {
			return Membership{}, err
		}
		voter = &picked
	}
	tryCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var membership Membership
	err := c.pool.call(tryCtx, c.target, voter.endpoint, op, func(ctx context.Context, cc *grpc.ClientConn) error {
		if !listsLinearizably(voter.health.Version) {
			// Such a server responds from memory. It is the same server that has to
			// catch up for a read of any key first, as that is the same connection.
			if _, err := pb.NewKVClient(cc).Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true}); err != nil {
				return err
			}
		}
		resp, err := pb.NewClusterClient(cc).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
		if err == nil {
			membership = membershipOf(resp)
		}
		return err
	})
	var e *Error
	if errors.As(err, &e) && errors.Is(e.Kind, ErrTimeout) && !errors.Is(ctx.Err(), context.Canceled) {
		// The voter responded a moment ago; what it waits for is the others.
		e.Kind = ErrNoQuorum
	}
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
			membership = membershipOf(resp)
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

// bounded gives ctx the pool's time-out for calls if it has no deadline.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.pool.config.CallTimeout)
}

// pause waits and says whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func membershipOf(resp *pb.MemberListResponse) Membership {
	m := Membership{}
	if h := resp.Header; h != nil {
		m.ClusterID, m.From, m.RaftTerm = h.ClusterId, h.MemberId, h.RaftTerm
	}
	for _, member := range resp.Members {
		m.Members = append(m.Members, memberOf(member))
	}
	slices.SortFunc(m.Members, func(a, b Member) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return m
}

func memberOf(m *pb.Member) Member {
	return Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.IsLearner}
}

func healthOf(resp *pb.StatusResponse) MemberHealth {
	h := MemberHealth{
		Leader:      resp.Leader,
		Version:     resp.Version,
		DBSize:      resp.DbSize,
		DBSizeInUse: resp.DbSizeInUse,
		Quota:       resp.DbSizeQuota,
		RaftTerm:    resp.RaftTerm,
		RaftIndex:   resp.RaftIndex,
		RaftApplied: resp.RaftAppliedIndex,
		Learner:     resp.IsLearner,
	}
	if header := resp.Header; header != nil {
		h.ID, h.ClusterID = header.MemberId, header.ClusterId
	}
	for _, text := range resp.Errors {
		// etcd puts its alarms among the errors, printed as protobuf text. Asking
		// for them properly is a write to the whole cluster.
		var alarm pb.AlarmMember
		if prototext.Unmarshal([]byte(text), protoadapt.MessageV2Of(&alarm)) == nil && alarm.Alarm != pb.AlarmType_NONE {
			h.Alarms = append(h.Alarms, alarmOf(&alarm))
		} else {
			h.Errors = append(h.Errors, text)
		}
	}
	return h
}

// expiryOf returns when the certificate ends that a member showed; zero without TLS.
func expiryOf(from *peer.Peer) time.Time {
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return time.Time{}
	}
	return info.State.PeerCertificates[0].NotAfter
}

func alarmOf(a *pb.AlarmMember) Alarm {
	return Alarm{MemberID: a.MemberID, Type: AlarmType(a.Alarm.String())}
}
