// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
)

// Shown is what a member shows of itself to a client that connects.
type Shown struct {
	// Client is the certificate at the port for clients, Peer that at the port for the
	// other members. etcd reads both again for each connection.
	Client, Peer *x509.Certificate
	// Err says why they could not be seen.
	Err error
}

var errNothingShown = errors.New("the listener showed no certificate")

// Shown makes a TLS handshake with both ports of every member, at the same time, and
// returns what each showed; the result has an entry for the name of each endpoint. No
// request is made, and whether the member accepts this client does not matter. None
// takes longer than the pool's time-out for one member.
func (c *Client) Shown(ctx context.Context, peerPort int) map[string]Shown {
	ctx, cancel := context.WithTimeout(ctx, c.pool.config.StatusTimeout)
	defer cancel()
	var mu sync.Mutex
	var group sync.WaitGroup
	results := make(map[string]Shown, len(c.target.Endpoints))
	for _, e := range c.target.Endpoints {
		group.Go(func() {
			shown := shown(ctx, c.target.TLS, e, peerPort)
			mu.Lock()
			defer mu.Unlock()
			results[e.Name] = shown
		})
	}
	group.Wait()
	return results
}

func shown(ctx context.Context, config *tls.Config, e Endpoint, peerPort int) Shown {
	u, err := url.Parse(e.URL)
	if err != nil || config == nil {
		return Shown{Err: fmt.Errorf("member %s: %w", e.Name, errors.Join(err, errBadEndpoint))}
	}
	address := dialAddress(u, e)
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return Shown{Err: fmt.Errorf("member %s: %w", e.Name, err)}
	}
	client, clientErr := handshake(ctx, config, u.Hostname(), address)
	peer, peerErr := handshake(ctx, config, u.Hostname(), net.JoinHostPort(host, strconv.Itoa(peerPort)))
	if err := errors.Join(clientErr, peerErr); err != nil {
		return Shown{Err: fmt.Errorf("member %s: %w", e.Name, err)}
	}
	return Shown{Client: client, Peer: peer}
}

// handshake returns the certificate of a server that was verified. The server may end
// the connection afterwards, because it does not know this client.
func handshake(ctx context.Context, config *tls.Config, name, address string) (*x509.Certificate, error) {
	var seen *x509.Certificate
	config = config.Clone()
	config.ServerName = name
	config.VerifyConnection = func(state tls.ConnectionState) error {
		seen = state.PeerCertificates[0]
		return nil
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err == nil {
		err = conn.Close()
	}
	if seen != nil {
		return seen, nil
	}
	return nil, errors.Join(errNothingShown, err)
}
