// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// identity is that of the member that responds on a connection. The header of each response says it.
type identity struct{ cluster, member uint64 }

// errEnded: gRPC wants to connect a second time. Another process may listen at the address by now.
var errEnded = errors.New("the connection has ended")

// link is the one transport that a connection ever has, and the identity of the member behind it. gRPC would
// connect again by itself and hide that. The proof of the first process would then count for the next process.
type link struct {
	connected atomic.Bool
	said      atomic.Pointer[identity]
}

// dialOnce returns a dialer that makes one connection.
func (l *link) dialOnce(address string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		if l.connected.Load() {
			return nil, errEnded
		}
		conn, err := (&net.Dialer{KeepAliveConfig: alive}).DialContext(ctx, "tcp", address)
		if err == nil {
			l.connected.Store(true)
		}
		return conn, err
	}
}

// hasEnded is true if the transport of a connection no longer exists.
func (l *link) hasEnded(state connectivity.State) bool {
	return l.connected.Load() && (state == connectivity.Idle || state == connectivity.TransientFailure || state == connectivity.Shutdown)
}

// note remembers the identity in a response; it is an interceptor of all calls but streams.
func (l *link) note(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if err := invoke(ctx, method, request, reply, cc, options...); err != nil {
		return err
	}
	if response, ok := reply.(interface{ GetHeader() *pb.ResponseHeader }); ok {
		if h := response.GetHeader(); h != nil {
			l.said.Store(&identity{cluster: h.ClusterId, member: h.MemberId})
		}
	}
	return nil
}

// check returns an error if what responds is known not to be the member at e.
func (l *link) check(t Target, e Endpoint) error {
	said := l.said.Load()
	switch {
	case said == nil:
		return nil
	case len(t.ClusterIDs) > 0 && !slices.Contains(t.ClusterIDs, said.cluster):
		return fmt.Errorf("%w: its cluster ID is %x, and that of this cluster is %s", ErrOtherCluster, said.cluster, hexIDs(t.ClusterIDs))
	case e.MemberID != 0 && e.MemberID != said.member:
		return fmt.Errorf("%w: its ID is %x, and that of member %s is %x", ErrOtherMember, said.member, e.Name, e.MemberID)
	default:
		return nil
	}
}

func hexIDs(ids []uint64) string {
	text := ""
	for i, id := range ids {
		if i > 0 {
			text += " or "
		}
		text += fmt.Sprintf("%x", id)
	}
	return text
}

// identify makes sure that the member at e responds on a connection, before anything else is sent
// on it.
func (p *Pool) identify(ctx context.Context, c *conn, t Target, e Endpoint) error {
	if len(t.ClusterIDs) == 0 && e.MemberID == 0 {
		return nil
	}
	if c.link.said.Load() == nil {
		ctx, cancel := context.WithTimeout(ctx, p.config.StatusTimeout)
		defer cancel()
		if _, err := pb.NewMaintenanceClient(c.cc).Status(ctx, &pb.StatusRequest{}); err != nil {
			return err
		}
	}
	return c.link.check(t, e)
}
