// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// tunnels is a listener of the connections that clients ask a proxy for to servers with TLS.
// The proxy ends them itself, with a certificate of the same CA as the server's.
type tunnels struct {
	config *tls.Config
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newTunnels(config *tls.Config) *tunnels {
	return &tunnels{config: config, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// open turns the connection of a request into one of the listener.
func (l *tunnels) open(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")); err != nil {
		_ = conn.Close()
		return
	}
	select {
	case l.conns <- tls.Server(conn, l.config):
	case <-l.closed:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (l *tunnels) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *tunnels) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *tunnels) Addr() net.Addr { return &net.TCPAddr{} }
