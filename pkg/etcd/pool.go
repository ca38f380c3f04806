// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"k8s.io/utils/clock"
)

// PoolConfig says how much a Pool keeps. Fields that are zero have defaults.
type PoolConfig struct {
	// Clock tells when a connection has been idle, or a snapshot has stalled, for too long.
	Clock clock.WithDelayedExecution
	// IdleTimeout is how long an unused connection is kept. Default 90 s.
	IdleTimeout time.Duration
	// StatusTimeout is how long one member may take to tell its own status.
	// Default 2 s.
	StatusTimeout time.Duration
	// CallTimeout bounds calls whose context has no deadline. Default 5 s.
	CallTimeout time.Duration
}

// Pool holds the connections to all clusters. Connections are made when they are
// needed and shared; one on which a call failed is not used again, so that every
// response, a bad one too, is fresh. There are as many connections as members that are
// asked: a limit below that would close each connection before its next use. A
// connection ends when it was idle for too long, or when Keep leaves it out. All methods
// are safe for concurrent use.
type Pool struct {
	config PoolConfig

	mu     sync.Mutex
	closed bool
	conns  map[connKey]*conn
	// idle holds the connections that are not in use, the most recently used first.
	idle  *list.List
	timer clock.Timer
	// kept holds the connections that Keep was last called with, by their owner.
	kept map[string][]connKey
}

// connKey is what must be equal for two uses to share a connection.
type connKey struct {
	url, address string
	identity     string
	config       *tls.Config
}

type conn struct {
	key   connKey
	cc    *grpc.ClientConn
	link  link
	users int
	// dropped connections are no longer in the pool's map; the last user closes them.
	dropped bool
	// responded is true if etcd responded to the last call that was not canceled.
	responded atomic.Bool
	// element and since are set while the connection is not in use.
	element *list.Element
	since   time.Time
}

// NewPool returns a pool without connections. Close it to end its connections.
func NewPool(config PoolConfig) *Pool {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	setDefault(&config.IdleTimeout, 90*time.Second)
	setDefault(&config.StatusTimeout, 2*time.Second)
	setDefault(&config.CallTimeout, 5*time.Second)
	return &Pool{config: config, conns: map[connKey]*conn{}, idle: list.New(), kept: map[string][]connKey{}}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Close ends all connections; calls under way fail, and later ones with ErrClosed.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	var ending []*conn
	for _, c := range p.conns {
		c.dropped = true
		ending = append(ending, c)
	}
	clear(p.conns)
	clear(p.kept)
	p.idle.Init()
	p.stopTimer()
	p.mu.Unlock()
	closeAll(ending)
}

// Keep ends the connections that an earlier Keep of the same owner named and that this
// one does not: those to members that were removed, whose address or whose certificates
// changed. Without targets it ends all of them and forgets the owner. Calls under way on
// such a connection end as usual.
func (p *Pool) Keep(owner string, targets ...Target) {
	var keys []connKey
	for _, t := range targets {
		for _, e := range t.Endpoints {
			keys = append(keys, keyOf(t, e))
		}
	}
	p.mu.Lock()
	var ending []*conn
	for _, key := range p.kept[owner] {
		c := p.conns[key]
		if c == nil || slices.Contains(keys, key) {
			continue
		}
		p.drop(c)
		if c.users == 0 {
			ending = append(ending, c)
		}
	}
	if len(keys) == 0 || p.closed {
		delete(p.kept, owner)
	} else {
		p.kept[owner] = keys
	}
	p.setTimer()
	p.mu.Unlock()
	closeAll(ending)
}

// Len returns the number of connections that are kept, used or not.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// call runs f on a connection to e on which the member of e responds, and wraps its error.
func (p *Pool) call(ctx context.Context, t Target, e Endpoint, op string, f func(context.Context, *grpc.ClientConn) error) error {
	return p.with(ctx, t, e, op, func(c *conn) error {
		if err := p.identify(ctx, c, t, e); err != nil {
			return err
		}
		return f(ctx, c.cc)
	})
}

// with runs f on a connection to e, and fails if the response was not that of the member of e.
func (p *Pool) with(ctx context.Context, t Target, e Endpoint, op string, f func(*conn) error) error {
	c, err := p.acquire(t, e)
	if err != nil {
		return wrap(op, e.Name, err)
	}
	err = f(c)
	if err == nil {
		err = c.link.check(t, e)
	}
	err = wrap(op, e.Name, err)
	p.release(c, c.isGood(ctx, err))
	return err
}

// isGood is true if the connection proved to work: etcd responded, if only to reject. A
// canceled call proves nothing, and a new connection works before gRPC calls it ready.
func (c *conn) isGood(ctx context.Context, err error) bool {
	if errors.Is(err, ErrTimeout) && errors.Is(ctx.Err(), context.Canceled) {
		state := c.cc.GetState()
		return state == connectivity.Ready || state == connectivity.Connecting && c.responded.Load()
	}
	good := !isAny(err, ErrUnavailable, ErrTimeout, ErrOtherCluster, ErrOtherMember)
	c.responded.Store(good)
	return good
}

func keyOf(t Target, e Endpoint) connKey {
	config, identity := tlsOf(t, e)
	key := connKey{url: e.URL, address: e.Address, identity: identity}
	if key.identity == "" {
		key.config = config
	}
	return key
}

// acquire returns a connection to e and counts the caller as its user.
func (p *Pool) acquire(t Target, e Endpoint) (*conn, error) {
	key := keyOf(t, e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	c := p.conns[key]
	if c != nil && c.link.hasEnded(c.cc.GetState()) {
		p.drop(c)
		if c.users == 0 {
			go closeAll([]*conn{c})
		}
		c = nil
	}
	if c == nil {
		c = &conn{key: key}
		cc, err := dial(t, e, &c.link)
		if err != nil {
			return nil, err
		}
		c.cc = cc
		p.conns[key] = c
	}
	if c.element != nil {
		p.idle.Remove(c.element)
		c.element = nil
	}
	c.users++
	return c, nil
}

// release gives a connection back; if it is not good, it is not used again.
func (p *Pool) release(c *conn, good bool) {
	p.mu.Lock()
	c.users--
	if !good && !c.dropped {
		p.drop(c)
	}
	var ending []*conn
	switch {
	case c.users > 0:
	case c.dropped:
		ending = append(ending, c)
	default:
		c.since = p.config.Clock.Now()
		c.element = p.idle.PushFront(c)
		p.setTimer()
	}
	p.mu.Unlock()
	closeAll(ending)
}

// expire ends the connections that were idle for too long. The clock calls it.
func (p *Pool) expire() {
	p.mu.Lock()
	p.timer = nil
	var ending []*conn
	now := p.config.Clock.Now()
	for c := p.oldest(); c != nil && now.Sub(c.since) >= p.config.IdleTimeout; c = p.oldest() {
		ending = append(ending, p.dropOldest())
	}
	p.setTimer()
	p.mu.Unlock()
	closeAll(ending)
}

// oldest returns the connection that was idle for longest, or nil.
func (p *Pool) oldest() *conn {
	if back := p.idle.Back(); back != nil {
		if c, ok := back.Value.(*conn); ok {
			return c
		}
	}
	return nil
}

func (p *Pool) dropOldest() *conn {
	c := p.oldest()
	p.drop(c)
	return c
}

// drop takes a connection out of the pool without closing it.
func (p *Pool) drop(c *conn) {
	c.dropped = true
	if p.conns[c.key] == c {
		delete(p.conns, c.key)
	}
	if c.element != nil {
		p.idle.Remove(c.element)
		c.element = nil
	}
}

// setTimer makes the clock call expire when the oldest idle connection is due. There
// is no timer while none is idle.
func (p *Pool) setTimer() {
	c := p.oldest()
	if c == nil || p.closed {
		p.stopTimer()
		return
	}
	if p.timer == nil {
		left := p.config.IdleTimeout - p.config.Clock.Now().Sub(c.since)
		// In a goroutine, because a clock for tests calls while it is locked.
		p.timer = p.config.Clock.AfterFunc(max(left, 0), func() { go p.expire() })
	}
}

func (p *Pool) stopTimer() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// closeAll closes connections, outside the lock: it waits for their goroutines. The
// only error is that one was closed before.
func closeAll(conns []*conn) {
	for _, c := range conns {
		_ = c.cc.Close()
	}
}
