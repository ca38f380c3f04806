// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// A member that restarts is back within a second; gRPC's own defaults would
	// look again only after up to two minutes.
	dialBaseDelay = 50 * time.Millisecond
	dialMaxDelay  = time.Second
	// connectTimeout bounds one attempt, handshakes included.
	connectTimeout = 2 * time.Second

	// bufferSize is for what is written, which is small. gRPC's own buffers take 64 KiB of
	// each connection.
	bufferSize = 4 << 10
)

// alive finds a connection whose other end has vanished, for calls that take minutes; all
// others have a short deadline. The kernel does it: gRPC has a goroutine for it, whose
// stack is a tenth of a connection. It begins later than the next look at a member, so
// that nothing is sent at rest.
var alive = net.KeepAliveConfig{Enable: true, Idle: 20 * time.Second, Interval: 5 * time.Second, Count: 3}

// dial returns a connection that connects when it is first used, and only once.
func dial(t Target, e Endpoint, l *link) (*grpc.ClientConn, error) {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", e.Name, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Port() == "" {
		return nil, fmt.Errorf("endpoint %s: %q is no URL with scheme, host and port: %w", e.Name, e.URL, errBadEndpoint)
	}
	creds := insecure.NewCredentials()
	if u.Scheme == "https" {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if given, _ := tlsOf(t, e); given != nil {
			config = given.Clone()
		}
		creds = credentials.NewTLS(config)
	}
	// The name is resolved at each attempt: gRPC's own resolver would hold on to the
	// address of a pod that no longer exists. An environment variable for a web proxy must
	// not send etcd's traffic there.
	address := dialAddress(u, e)
	return grpc.NewClient("passthrough:///"+u.Host,
		grpc.WithTransportCredentials(creds),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(l.dialOnce(address)),
		grpc.WithUnaryInterceptor(l.note),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: dialBaseDelay, Multiplier: 1.6, Jitter: 0.2, MaxDelay: dialMaxDelay},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithReadBufferSize(0), // frames are read one by one, which snapshots do not feel
		grpc.WithWriteBufferSize(bufferSize),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithMaxHeaderListSize(maxHeaders),
	)
}

// tlsOf returns the TLS configuration for an endpoint, and its identity.
func tlsOf(t Target, e Endpoint) (*tls.Config, string) {
	if e.TLS != nil {
		return e.TLS, e.TLSIdentity
	}
	return t.TLS, t.TLSIdentity
}

// dialAddress returns the host:port to connect to.
func dialAddress(u *url.URL, e Endpoint) string {
	if e.Address != "" {
		return e.Address
	}
	return u.Host
}
