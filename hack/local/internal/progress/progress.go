// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Printer prints steps with the time since it was made. It may be used from
// several goroutines.
type Printer struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// New returns a printer to standard error whose clock starts now.
func New() *Printer { return &Printer{out: os.Stderr, start: time.Now()} }

// Step prints one line.
func (p *Printer) Step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%7.1fs  %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// What takes longer than firstSign is announced, and again at every nextSign.
const (
	firstSign = 3 * time.Second
	nextSign  = 20 * time.Second
)

// Working says from time to time that something is still going on, until the
// returned function is called; what is quick it does not mention.
func (p *Printer) Working(format string, args ...any) (done func()) {
	what := fmt.Sprintf(format, args...)
	stop := make(chan struct{})
	go func() {
		timer := time.NewTimer(firstSign)
		defer timer.Stop()
		for {
			select {
			case <-stop:
				return
			case <-timer.C:
				p.Step("%s ...", what)
				timer.Reset(nextSign)
			}
		}
	}()
	return sync.OnceFunc(func() { close(stop) })
}
