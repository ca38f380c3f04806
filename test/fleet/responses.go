// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// at calls f with the member that received the request: each has an address of its own.
func (e *Etcd) at(ctx context.Context, f func(p *process, header *pb.ResponseHeader) error) error {
	asked, ok := peer.FromContext(ctx)
	if !ok {
		return status.Error(codes.Internal, "no member runs at the address of the request")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.running[asked.LocalAddr.String()]
	if p == nil {
		return status.Error(codes.Unavailable, "the member has stopped")
	}
	return f(p, &pb.ResponseHeader{ClusterId: p.cluster.id, MemberId: p.id, RaftTerm: 2})
}

// atVoter is at for what needs a quorum.
func (e *Etcd) atVoter(ctx context.Context, f func(c *lineage, header *pb.ResponseHeader) error) error {
	return e.at(ctx, func(p *process, header *pb.ResponseHeader) error {
		if p.cluster.leader == 0 {
			return rpctypes.ErrGRPCNoLeader
		}
		if m := p.cluster.member(p.id); m == nil || m.IsLearner {
			return rpctypes.ErrGRPCNotSupportedForLearner
		}
		return f(p.cluster, header)
	})
}

func (c *lineage) member(id uint64) *pb.Member {
	if i := slices.IndexFunc(c.members, func(m *pb.Member) bool { return m.ID == id }); i >= 0 {
		return c.members[i]
	}
	return nil
}

// Status implements pb.MaintenanceServer.
func (e *Etcd) Status(ctx context.Context, _ *pb.StatusRequest) (resp *pb.StatusResponse, err error) {
	e.Statuses.Add(1)
	err = e.at(ctx, func(p *process, header *pb.ResponseHeader) error {
		m := p.cluster.member(p.id)
		resp = &pb.StatusResponse{
			Header: header, Version: Version, Leader: p.cluster.leader, DbSize: 20 << 10, DbSizeInUse: 20 << 10, DbSizeQuota: 2 << 30,
			RaftTerm: 2, RaftIndex: p.cluster.index, RaftAppliedIndex: p.cluster.index, IsLearner: m != nil && m.IsLearner,
		}
		return nil
	})
	return resp, err
}

// MoveLeader implements pb.MaintenanceServer.
func (e *Etcd) MoveLeader(ctx context.Context, r *pb.MoveLeaderRequest) (resp *pb.MoveLeaderResponse, err error) {
	err = e.atVoter(ctx, func(c *lineage, header *pb.ResponseHeader) error {
		c.leader, resp = r.TargetID, &pb.MoveLeaderResponse{Header: header}
		return nil
	})
	return resp, err
}

// LeaseGrant implements pb.LeaseServer: a write that a quorum commits, and all apply at once.
func (e *Etcd) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (resp *pb.LeaseGrantResponse, err error) {
	err = e.atVoter(ctx, func(c *lineage, header *pb.ResponseHeader) error {
		c.index++
		resp = &pb.LeaseGrantResponse{Header: header, ID: int64(c.index), TTL: r.TTL}
		return nil
	})
	return resp, err
}

// LeaseRevoke implements pb.LeaseServer.
func (e *Etcd) LeaseRevoke(ctx context.Context, _ *pb.LeaseRevokeRequest) (resp *pb.LeaseRevokeResponse, err error) {
	err = e.atVoter(ctx, func(c *lineage, header *pb.ResponseHeader) error {
		c.index++
		resp = &pb.LeaseRevokeResponse{Header: header}
		return nil
	})
	return resp, err
}

// MemberList implements pb.ClusterServer.
func (e *Etcd) MemberList(ctx context.Context, r *pb.MemberListRequest) (resp *pb.MemberListResponse, err error) {
	e.Lists.Add(1)
	list := func(c *lineage, header *pb.ResponseHeader) error {
		resp = &pb.MemberListResponse{Header: header}
		for _, m := range c.members {
			resp.Members = append(resp.Members, &pb.Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, IsLearner: m.IsLearner})
		}
		return nil
	}
	if r.Linearizable {
		err = e.atVoter(ctx, list)
	} else {
		err = e.at(ctx, func(p *process, header *pb.ResponseHeader) error { return list(p.cluster, header) })
	}
	return resp, err
}

// MemberAdd implements pb.ClusterServer.
func (e *Etcd) MemberAdd(ctx context.Context, r *pb.MemberAddRequest) (resp *pb.MemberAddResponse, err error) {
	err = e.atVoter(ctx, func(c *lineage, header *pb.ResponseHeader) error {
		if slices.ContainsFunc(c.members, func(m *pb.Member) bool { return m.IsLearner && r.IsLearner }) {
			return rpctypes.ErrGRPCTooManyLearners
		}
		e.lastID++
		m := &pb.Member{ID: e.lastID, PeerURLs: r.PeerURLs, IsLearner: r.IsLearner}
		c.members = append(c.members, m)
		c.index++
		e.Changes.Add(1)
		resp = &pb.MemberAddResponse{Header: header, Member: m}
		return nil
	})
	return resp, err
}

// MemberPromote implements pb.ClusterServer.
func (e *Etcd) MemberPromote(ctx context.Context, r *pb.MemberPromoteRequest) (resp *pb.MemberPromoteResponse, err error) {
	err = e.atVoter(ctx, func(c *lineage, header *pb.ResponseHeader) error {
		m := c.member(r.ID)
		switch {
		case m == nil:
			return rpctypes.ErrGRPCMemberNotFound
		case !m.IsLearner:
			return rpctypes.ErrGRPCMemberNotLearner
		case m.Name == "":
			return rpctypes.ErrGRPCLearnerNotReady
		}
		m.IsLearner = false
		c.index++
		e.Changes.Add(1)
		resp = &pb.MemberPromoteResponse{Header: header}
		return nil
	})
	return resp, err
}

// MemberRemove implements pb.ClusterServer.
func (e *Etcd) MemberRemove(ctx context.Context, r *pb.MemberRemoveRequest) (resp *pb.MemberRemoveResponse, err error) {
	err = e.atVoter(ctx, func(c *lineage, header *pb.ResponseHeader) error {
		if c.member(r.ID) == nil {
			return rpctypes.ErrGRPCMemberNotFound
		}
		c.members = slices.DeleteFunc(c.members, func(m *pb.Member) bool { return m.ID == r.ID })
		c.index++
		e.elect(c)
		e.Changes.Add(1)
		resp = &pb.MemberRemoveResponse{Header: header}
		return nil
	})
	return resp, err
}
