// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
)

// Progress tells how far a task has come. It is safe for concurrent use.
type Progress struct {
	// ID of the transfer.
	ID string

	mu           sync.Mutex
	step         string
	bytes, total int64
}

// Begin begins a step; total is 0 if it is not known.
func (p *Progress) Begin(step string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.bytes, p.total = step, 0, total
}

// Add counts bytes that were moved.
func (p *Progress) Add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += int64(n)
}

// Get returns the step, and the bytes of it that are done and that it has.
func (p *Progress) Get() (step string, bytes, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.step, p.bytes, p.total
}

// ServeHTTP serves an agent.Progress.
func (p *Progress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != agent.ProgressPath || (r.Method != http.MethodGet && r.Method != http.MethodHead) {
		http.NotFound(w, r)
		return
	}
	step, bytes, total := p.Get()
	w.Header().Set("Content-Type", "application/json")
	// The reader may have disconnected; nothing is left to do then.
	_ = json.NewEncoder(w).Encode(agent.Progress{ID: p.ID, Step: step, Bytes: bytes, TotalBytes: total})
}

// counted counts what is read.
func (p *Progress) counted(r io.Reader) io.Reader { return &countedReader{r, p} }

type countedReader struct {
	io.Reader

	progress *Progress
}

// Read implements io.Reader.
func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.progress.Add(n)
	return n, err
}
