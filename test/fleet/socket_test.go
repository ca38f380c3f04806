// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestSharedSocket: a connection reaches the listener of its own address, and ends where there is none.
func TestSharedSocket(t *testing.T) {
	t.Parallel()
	shared, err := newSocket(t.Context(), "0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		shared.run()
	}()
	t.Cleanup(func() {
		_ = shared.listener.Close()
		<-done
	})
	_, port, err := net.SplitHostPort(shared.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{net.JoinHostPort("127.77.0.1", port), net.JoinHostPort("127.77.0.2", port)}
	listeners := map[string]net.Listener{}
	for _, address := range addresses {
		listener, err := shared.listen(address)
		if err != nil {
			t.Fatal(err)
		}
		listeners[address] = listener
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, address)
				_ = conn.Close()
			}
		}()
	}
	if _, err := shared.listen(addresses[0]); err == nil {
		t.Error("two members have one address")
	}
	for _, address := range addresses {
		if got := said(t, address); got != address {
			t.Errorf("%s responded as %q", address, got)
		}
	}
	if err := listeners[addresses[0]].Close(); err != nil {
		t.Fatal(err)
	}
	if got := said(t, addresses[0]); got != "" {
		t.Errorf("a closed listener responded %q", got)
	}
	if got := said(t, addresses[1]); got != addresses[1] {
		t.Errorf("%s responded as %q after the other was closed", addresses[1], got)
	}
}

// said returns what is read from an address until the connection ends.
func said(t *testing.T, address string) string {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	content, _ := io.ReadAll(conn)
	return string(content)
}
