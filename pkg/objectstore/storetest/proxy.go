// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// piece is how much a faulty connection moves at once, in bytes.
const piece = 32 << 10

// Proxy stands between a store and its clients, and can be made to misbehave. A
// client reaches it as its HTTP proxy, so that the store's address, which requests
// are signed for, stays; or takes it for the store itself, if it was made by NewFront.
type Proxy struct {
	url  *url.URL
	next *http.Transport
	// tunnels are the connections to servers whose certificates it stands in for.
	tunnels *tunnels
	// backend is the store that it stands in the place of; nil for an HTTP proxy.
	backend *url.URL

	failEvery, requests, failed atomic.Int64
	// stallAfter and cutAfter are bytes of a connection, in both directions; limit is
	// bytes a second of a connection, in each.
	stallAfter, cutAfter, cutOnce, limit atomic.Int64

	// damaged is the offset of the byte that is changed in large requests. lies is what the
	// proxy reports of checksums. intercept may respond in place of the store. Each is nil
	// or 0 for none.
	damaged   atomic.Int64
	lies      atomic.Pointer[lie]
	intercept atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]

	// timeout is the time-out for a stall of those that Transport leads through the proxy. 0 is the default.
	timeout time.Duration

	// passed are the requests that the store is responding.
	passed sync.RWMutex

	mu    sync.Mutex
	conns map[*faultyConn]bool
}

// NewProxy starts a proxy that behaves. It ends with the test.
func NewProxy(t testing.TB) *Proxy {
	t.Helper()
	return newProxy(t, nil)
}

// NewFront starts a proxy whose own address clients take for that of a store, such as
// processes that take no proxy for servers on the same machine. It ends with the test.
func NewFront(t testing.TB, backend string) *Proxy {
	t.Helper()
	u, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	return newProxy(t, u)
}

func newProxy(t testing.TB, backend *url.URL) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{url: &url.URL{Scheme: "http", Host: listener.Addr().String()}, backend: backend, conns: map[*faultyConn]bool{}}
	p.next = Transport(t, nil)
	p.next.DisableCompression = true
	p.tunnels = newTunnels(ServerTLS(t))
	discarded := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // of handshakes that tests break
	var accepted net.Listener = &faultyListener{listener, p}
	if backend != nil && backend.Scheme == "https" {
		p.url.Scheme = backend.Scheme
		accepted = tls.NewListener(accepted, ServerTLS(t))
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: discarded}
	inner := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: discarded}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(accepted) })
	serving.Go(func() { _ = inner.Serve(p.tunnels) })
	t.Cleanup(func() {
		p.Heal()
		_ = inner.Close()
		_ = server.Close()
		p.closeAll()
		serving.Wait()
		p.next.CloseIdleConnections()
	})
	return p
}

// Endpoint is the address of the proxy.
func (p *Proxy) Endpoint() string { return p.url.String() }

// FailEvery fails every n-th request with 503 instead of passing it on.
func (p *Proxy) FailEvery(n int64) { p.failEvery.Store(n) }

// Reject passes nothing on any more, and returns when the store has responded to what
// was passed on before.
func (p *Proxy) Reject() {
	p.failEvery.Store(1)
	p.passed.Lock()
	defer p.passed.Unlock()
}

// Failed is how many requests were acknowledged with 503.
func (p *Proxy) Failed() int64 { return p.failed.Load() }

// StallAfter moves no byte of a connection after so many.
func (p *Proxy) StallAfter(n int64) {
	p.stallAfter.Store(n)
	p.closeAll() // those that are there have moved more already
}

// CutAfter cuts a connection after so many bytes.
func (p *Proxy) CutAfter(n int64) {
	p.cutAfter.Store(n)
	p.closeAll()
}

// CutOnceAfter cuts one connection after so many bytes.
func (p *Proxy) CutOnceAfter(n int64) {
	p.cutOnce.Store(n)
	p.closeAll()
}

// HasCut is true when CutOnceAfter has had its effect.
func (p *Proxy) HasCut() bool { return p.cutOnce.Load() == 0 }

// Limit moves at most n bytes a second of a connection.
func (p *Proxy) Limit(n int64) { p.limit.Store(n) }

// Heal makes it behave again.
func (p *Proxy) Heal() {
	for _, fault := range []*atomic.Int64{&p.failEvery, &p.stallAfter, &p.cutAfter, &p.cutOnce, &p.limit, &p.damaged} {
		fault.Store(0)
	}
	p.lies.Store(nil)
	p.intercept.Store(nil)
	p.closeAll()
}

func (p *Proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.end()
	}
	clear(p.conns)
}

// ServeHTTP passes a request on.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		p.tunnels.open(w)
		return
	}
	if response := p.intercept.Load(); response != nil && (*response)(w, r) {
		return
	}
	p.passed.RLock()
	defer p.passed.RUnlock()
	if n := p.failEvery.Load(); n > 0 && p.requests.Add(1)%n == 0 {
		p.failed.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "slow down", http.StatusServiceUnavailable)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI = ""
	if out.ContentLength == 0 {
		out.Body = http.NoBody
	}
	if r.TLS != nil { // in a tunnel, in which only the host is named
		out.URL.Scheme, out.URL.Host = "https", r.Host
	}
	if p.backend != nil {
		out.URL.Scheme, out.URL.Host = p.backend.Scheme, p.backend.Host // the host that is requested is signed, and stays
	}
	p.damage(out)
	response, err := p.next.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler) // the client sees that the connection broke
	}
	defer response.Body.Close()
	if l := p.lies.Load(); l != nil {
		l.tell(r, response)
	}
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	if to := response.Header.Get("Location"); p.backend != nil && to != "" {
		// Where an upload goes on, which is not to go around the proxy.
		w.Header().Set("Location", strings.Replace(to, p.backend.String(), p.url.Scheme+"://"+r.Host, 1))
	}
	w.WriteHeader(response.StatusCode)
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, response.Body, make([]byte, piece)); err != nil {
		panic(http.ErrAbortHandler)
	}
}

type faultyListener struct {
	net.Listener

	proxy *Proxy
}

func (l *faultyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &faultyConn{Conn: conn, proxy: l.proxy, over: make(chan struct{})}
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.proxy.conns[c] = true
	return c, nil
}

type faultyConn struct {
	net.Conn

	proxy *Proxy
	moved atomic.Int64
	once  sync.Once
	over  chan struct{}

	reads, writes pace
}

// pace is when the next piece of a direction may move; one goroutine reads, and one writes.
type pace struct{ due time.Time }

// backlog is what a process that had to wait for the processor may catch up on. Without it,
// such waits add to those for the limit, and a loaded machine is slower than the limit by far.
const backlog = time.Second

// after adds a piece and returns how long it must wait.
func (p *pace) after(now time.Time, d time.Duration) time.Duration {
	if p.due.IsZero() {
		p.due = now
	}
	if oldest := now.Add(-backlog); p.due.Before(oldest) {
		p.due = oldest
	}
	p.due = p.due.Add(d)
	return p.due.Sub(now)
}

var errCut = errors.New("cut")

func (c *faultyConn) end() {
	c.once.Do(func() {
		close(c.over)
		_ = c.Conn.Close()
	})
}

func (c *faultyConn) Close() error {
	c.end()
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	delete(c.proxy.conns, c)
	return nil
}

// before is called for each piece that is to be moved.
func (c *faultyConn) before(n int, p *pace) error {
	moved := c.moved.Add(int64(n))
	if limit := c.proxy.stallAfter.Load(); limit > 0 && moved > limit {
		<-c.over
		return net.ErrClosed
	}
	if limit := c.proxy.cutAfter.Load(); limit > 0 && moved > limit {
		c.end()
		return errCut
	}
	if limit := c.proxy.cutOnce.Load(); limit > 0 && moved > limit && c.proxy.cutOnce.CompareAndSwap(limit, 0) {
		c.end()
		return errCut
	}
	if limit := c.proxy.limit.Load(); limit > 0 {
		timer := time.NewTimer(p.after(time.Now(), time.Duration(n)*time.Second/time.Duration(limit)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.over:
			return net.ErrClosed
		}
	}
	return nil
}

func (c *faultyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), piece)])
	if err == nil {
		err = c.before(n, &c.reads)
	}
	return n, err
}

func (c *faultyConn) Write(p []byte) (int, error) {
	written := 0
	for part := range slices.Chunk(p, piece) {
		if err := c.before(len(part), &c.writes); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(part)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
