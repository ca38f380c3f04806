// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

var errAddressTaken = errors.New("another member has the address")

// socket accepts the connections of all addresses on loopback at one port. Members of a large
// fleet share it: a listener for each would take as many descriptors as all connections do, and a
// process may have a limit of 20,000.
type socket struct {
	listener net.Listener

	mu sync.Mutex
	at map[string]*inbox
}

// newSocket listens at the port on the loopback device only, and on all of its addresses.
func newSocket(ctx context.Context, port string) (*socket, error) {
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) (err error) {
		controlled := conn.Control(func(descriptor uintptr) { err = syscall.BindToDevice(int(descriptor), "lo") })
		return errors.Join(controlled, err)
	}}
	listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort("0.0.0.0", port))
	if err != nil {
		return nil, err
	}
	return &socket{listener: listener, at: map[string]*inbox{}}, nil
}

// run passes connections on until the socket is closed.
func (s *socket) run() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		s.mu.Lock()
		to := s.at[conn.LocalAddr().String()]
		s.mu.Unlock()
		if to == nil || !to.take(conn) {
			_ = conn.Close()
		}
	}
}

// listen returns a listener for one address.
func (s *socket) listen(address string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[address] != nil {
		return nil, errAddressTaken
	}
	made := &inbox{socket: s, address: resolved, conns: make(chan net.Conn), closed: make(chan struct{})}
	s.at[address] = made
	return made, nil
}

// inbox is the listener of one address.
type inbox struct {
	socket  *socket
	address *net.TCPAddr
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

var _ net.Listener = &inbox{}

// take is false if the listener is closed.
func (i *inbox) take(conn net.Conn) bool {
	select {
	case i.conns <- conn:
		return true
	case <-i.closed:
		return false
	}
}

// Accept implements net.Listener.
func (i *inbox) Accept() (net.Conn, error) {
	select {
	case conn := <-i.conns:
		return conn, nil
	case <-i.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (i *inbox) Close() error {
	i.once.Do(func() {
		i.socket.mu.Lock()
		delete(i.socket.at, i.address.String())
		i.socket.mu.Unlock()
		close(i.closed)
	})
	return nil
}

// Addr implements net.Listener.
func (i *inbox) Addr() net.Addr { return i.address }
