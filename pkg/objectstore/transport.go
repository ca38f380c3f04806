// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultStall is how long no byte may move on a connection by default.
const DefaultStall = 5 * time.Minute

// TransportConfig says how to reach a store.
type TransportConfig struct {
	// CA in PEM form that signs the store's certificate. Empty: the usual CAs.
	CA []byte
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
	// Stall is how long no byte may move in either direction. Default: DefaultStall.
	Stall time.Duration
}

// NewTransport returns a transport that bounds no transfer as a whole, and closes a
// connection on which nothing moves.
func NewTransport(config TransportConfig) (*http.Transport, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(config.CA) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(config.CA) {
			return nil, fmt.Errorf("%w: ca.crt holds no certificate in PEM form", ErrCredentials)
		}
	}
	tlsConfig.InsecureSkipVerify = config.InsecureSkipVerify
	stall := config.Stall
	if stall == 0 {
		stall = DefaultStall
	}
	dialer := &net.Dialer{Timeout: min(30*time.Second, stall), KeepAlive: 15 * time.Second}
	protocols := &http.Protocols{}
	// With HTTP/2 all transfers would share one connection, and its stall.
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:           proxyOf,
		TLSClientConfig: tlsConfig,
		Protocols:       protocols,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: conn, stall: stall}, nil
		},
		TLSHandshakeTimeout:   min(30*time.Second, stall),
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   8,
		ExpectContinueTimeout: time.Second,
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        64 << 10,
	}, nil
}

// metadataHost is that of Google's metadata server.
const metadataHost = "metadata.google.internal"

// metadataNetworks are where clouds give a workload the credentials of its identity, in
// plain text. Requests to them go through no proxy: it would see the credentials.
var metadataNetworks = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fd00:ec2::/32"),
	netip.MustParsePrefix("100.100.100.200/32"),
}

// proxyOf returns the proxy for a request, as the environment says.
func proxyOf(request *http.Request) (*url.URL, error) {
	host := request.URL.Hostname()
	if strings.EqualFold(strings.TrimSuffix(host, "."), metadataHost) {
		return nil, nil
	}
	if address, err := netip.ParseAddr(host); err == nil {
		for _, network := range metadataNetworks {
			if network.Contains(address.Unmap().WithZone("")) {
				return nil, nil
			}
		}
	}
	return http.ProxyFromEnvironment(request)
}

// IsFinal is true for what another connection at once does not heal: nothing has moved for as
// long as is allowed, or the certificate of the store is not trusted.
func IsFinal(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.Is(err, ErrStalled) || errors.As(err, &certificate)
}

// watchedConn fails when no byte moves for a time, in either direction: a response
// may take long while a body is still being sent.
type watchedConn struct {
	net.Conn

	stall time.Duration
	// gaveUp is true once nothing moved for too long. The reader detects that and closes
	// the connection. A writer at the same time then reports the stall, not a closed
	// connection.
	gaveUp atomic.Bool
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, c.stalled(err)
	}
	n, err := c.Conn.Read(p)
	return n, c.stalled(err)
}

// Write implements net.Conn.
func (c *watchedConn) Write(p []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, c.stalled(err)
	}
	n, err := c.Conn.Write(p)
	return n, c.stalled(err)
}

func (c *watchedConn) extend() error {
	return c.SetDeadline(time.Now().Add(c.stall))
}

// stalledError stays a time-out of the network for those who look for one.
type stalledError struct{ stall time.Duration }

func (e stalledError) Error() string   { return fmt.Sprintf("no byte moved for %s", e.stall) }
func (e stalledError) Timeout() bool   { return true }
func (e stalledError) Temporary() bool { return true }
func (e stalledError) Unwrap() error   { return ErrStalled }

func (c *watchedConn) stalled(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.gaveUp.Store(true)
	}
	if err != nil && c.gaveUp.Load() {
		return stalledError{c.stall}
	}
	return err
}
