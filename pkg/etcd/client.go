// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/protoadapt"

	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
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
	err := c.pool.with(ctx, c.target, e, "status", func(on *conn) error {
		var from peer.Peer
		resp, err := pb.NewMaintenanceClient(on.cc).Status(ctx, &pb.StatusRequest{}, grpc.Peer(&from))
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

// membershipOf fails with ErrTooLarge before it keeps anything of a list that is too large.
func membershipOf(resp *pb.MemberListResponse) (Membership, error) {
	if err := checkSize(resp.Members); err != nil {
		return Membership{}, err
	}
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
	return m, nil
}

func memberOf(m *pb.Member) Member {
	return Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.IsLearner}
}

func healthOf(resp *pb.StatusResponse) MemberHealth {
	h := MemberHealth{
		Leader:      resp.Leader,
		Version:     untrusted.Within(resp.Version, maxVersion),
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
	for _, text := range resp.Errors[:min(len(resp.Errors), maxReported)] {
		// etcd puts its alarms among the errors, printed as protobuf text. Asking
		// for them properly is a write to the whole cluster.
		var alarm pb.AlarmMember
		if prototext.Unmarshal([]byte(text), protoadapt.MessageV2Of(&alarm)) == nil && alarm.Alarm != pb.AlarmType_NONE {
			h.Alarms = append(h.Alarms, alarmOf(&alarm))
		} else {
			h.Errors = append(h.Errors, untrusted.Text(text))
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
