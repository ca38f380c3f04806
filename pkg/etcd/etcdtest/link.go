// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// linkPause is how often a link that is limited moves something.
const linkPause = 50 * time.Millisecond

// Link leads to a server under an address of its own, as a pod has one. What the server
// says can be made slow, and can be cut.
type Link struct {
	// IP is the address, on loopback.
	IP string

	to      string
	over    <-chan struct{}
	rate    atomic.Int64
	cutAt   atomic.Int64
	carried atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// NewLink makes a server reachable at a port of an address of its own.
func NewLink(t testing.TB, to string, port int) *Link {
	t.Helper()
	for range 50 {
		ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 2+rand.IntN(250))
		listener, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		l := &Link{IP: ip, to: to, conns: map[net.Conn]bool{}}
		ctx, cancel := context.WithCancel(context.Background())
		l.over = ctx.Done()
		t.Cleanup(func() {
			cancel()
			_ = listener.Close()
			l.Cut()
		})
		go l.accept(ctx, listener)
		return l
	}
	t.Fatal("there is no free address")
	return nil
}

// Limit lets the server say so many bytes a second on each connection.
func (l *Link) Limit(bytesPerSecond int64) { l.rate.Store(bytesPerSecond) }

// CutAfter cuts every connection when the server has said so many bytes more, once.
func (l *Link) CutAfter(bytes int64) { l.cutAt.Store(l.carried.Load() + bytes) }

// Cut cuts every connection now.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
	clear(l.conns)
}

func (l *Link) accept(ctx context.Context, listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.mu.Lock()
		l.conns[client], l.conns[server] = true, true
		l.mu.Unlock()
		go l.carry(client, server, false)
		go l.carry(server, client, true)
	}
}

// carry moves bytes until a side no longer exists, and takes the other with it.
func (l *Link) carry(from, to net.Conn, responses bool) {
	defer func() {
		_, _ = from.Close(), to.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, from)
		delete(l.conns, to)
	}()
	buffer := make([]byte, 32<<10)
	for {
		size := len(buffer)
		rate := l.rate.Load()
		if responses && rate > 0 {
			size = max(1, min(size, int(rate*int64(linkPause)/int64(time.Second))))
		}
		n, err := from.Read(buffer[:size])
		if responses {
			if rate > 0 && !l.pause(time.Duration(n)*time.Second/time.Duration(rate)) {
				return
			}
			if at := l.cutAt.Load(); l.carried.Add(int64(n)) > at && at > 0 && l.cutAt.CompareAndSwap(at, 0) {
				l.Cut()
				return
			}
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// pause waits, and says whether the link is still there.
func (l *Link) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.over:
		return false
	}
}
