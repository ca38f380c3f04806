// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// responses is a store that gives one response after the other to uploads.
type responses struct {
	*Store

	mu       sync.Mutex
	script   []response
	requests int
	stored   []byte
}

type response func(http.ResponseWriter, *http.Request)

// store is the response of a store that has taken an object.
var store response

func responding(t *testing.T, script ...response) *responses {
	t.Helper()
	a := &responses{script: script}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		next := a.script[min(a.requests, len(a.script)-1)]
		a.requests++
		a.mu.Unlock()
		if next != nil {
			next(w, r)
			return
		}
		stored, err := content(r)
		if err != nil {
			t.Error(err)
		}
		a.stored = stored
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	a.Store = open(t, server.URL, "b", nil)
	return a
}

// after reads so much of a request and then responds.
func after(n int64, code int) response {
	return func(w http.ResponseWriter, r *http.Request) {
		if n > 0 {
			_, _ = io.CopyN(io.Discard, r.Body, n)
		}
		http.Error(w, "{}", code)
	}
}

// hangUp breaks the connection after so much of a request.
func hangUp(n int64) response {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, n)
		panic(http.ErrAbortHandler)
	}
}

// early responds that it has an object when that has just begun to come, and reads on slowly.
func early(w http.ResponseWriter, r *http.Request) {
	_, _ = io.CopyN(io.Discard, r.Body, 1000)
	controller := http.NewResponseController(w)
	_ = controller.EnableFullDuplex()
	w.WriteHeader(http.StatusOK)
	_ = controller.Flush()
	for one := make([]byte, 1); ; {
		if _, err := r.Body.Read(one); err != nil {
			return
		}
	}
}

// content is that of the object in a request.
func content(r *http.Request) ([]byte, error) {
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	parts := multipart.NewReader(r.Body, parameters["boundary"])
	if _, err := parts.NextPart(); err != nil {
		return nil, err
	}
	part, err := parts.NextPart()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(part)
}

// TestPassingFailures: what fails in passing is sent again while all of it is there, and
// not once something of it no longer exists.
func TestPassingFailures(t *testing.T) {
	const large = kept + objectstore.PartSize
	for name, test := range map[string]struct {
		size     int64
		script   []response
		requests int
		want     func(error) bool // nil if it is stored
	}{
		"small":                  {10, []response{after(10, 503), hangUp(10), after(0, 429), store}, 4, nil},
		"all of it is kept":      {kept - 1, []response{after(kept-1, 503), hangUp(kept / 2), after(0, 500), store}, 4, nil},
		"rejected at once":       {large, []response{after(0, 503), after(0, 503), store}, 3, nil},
		"permanently":            {10, []response{after(0, 503)}, maxTries, isCode(503)},
		"too late":               {large, []response{after(large-1000, 503), store}, 1, isCode(503)},
		"cut too late":           {large, []response{hangUp(large - 1000), store}, 1, func(err error) bool { return err != nil }},
		"there is one":           {large, []response{after(0, 412), store}, 1, isKind(objectstore.ErrExists)},
		"no bucket":              {large, []response{after(0, 404), store}, 1, isKind(objectstore.ErrNoBucket)},
		"denied":                 {large, []response{after(0, 403), store}, 1, isKind(objectstore.ErrDenied)},
		"stored before it came":  {large, []response{early, store}, 1, isKind(errEarly)},
		"a session all the same": {large, []response{after(large, 308), store}, 1, isCode(308)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			responding := responding(t, test.script...)
			data := make([]byte, test.size)
			_, _ = rand.Read(data)
			_, err := responding.Put(t.Context(), "k", io.LimitReader(bytes.NewReader(data), test.size), overwrite)
			if test.want == nil && (err != nil || !bytes.Equal(responding.stored, data)) {
				t.Errorf("%d of %d bytes are stored, %v", len(responding.stored), len(data), err)
			}
			if test.want != nil && !test.want(err) {
				t.Errorf("got %v", err)
			}
			if responding.requests != test.requests {
				t.Errorf("%d requests, want %d", responding.requests, test.requests)
			}
		})
	}
}

func isKind(kind error) func(error) bool { return func(err error) bool { return errors.Is(err, kind) } }

func isCode(code int) func(error) bool {
	return func(err error) bool {
		var response *googleapi.Error
		return errors.As(err, &response) && response.Code == code
	}
}

// TestEndOfRequest: a request that breaks off has neither a last chunk nor a closing
// boundary: a store may take either for the end.
func TestEndOfRequest(t *testing.T) {
	type ending struct {
		body []byte
		err  error
	}
	endings := make(chan ending, 1)
	store := responding(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		endings <- ending{body[max(0, len(body)-1000):], err}
		_, _ = io.WriteString(w, "{}")
	})
	store.keptParts = 0
	closes := func(body []byte) bool { return bytes.HasSuffix(body, []byte("--\r\n")) }
	if _, err := store.Put(t.Context(), "k", sized(1<<20), overwrite); err != nil {
		t.Fatal(err)
	}
	if whole := <-endings; whole.err != nil || !closes(whole.body) {
		t.Fatalf("a whole request ends with %q, %v", whole.body, whole.err)
	}
	for _, size := range []int64{1, 1000, 1 << 20} {
		if _, err := store.Put(t.Context(), "k", broken(size), overwrite); !errors.Is(err, errSource) {
			t.Error(err)
		}
		if cut := <-endings; cut.err == nil || closes(cut.body) {
			t.Errorf("a source that fails after %d: the request ends with %q, %v", size, cut.body, cut.err)
		}
	}
}

// halting gives a part of an object, and then what it is allowed to give.
type halting struct {
	first     io.Reader
	asked     chan struct{}
	goOn      chan struct{}
	over, now atomic.Bool
}

func (h *halting) Read(p []byte) (int, error) {
	if h.over.Load() {
		panic("the source is read after Put has returned")
	}
	if n, err := h.first.Read(p); err == nil {
		return n, nil
	}
	if h.now.CompareAndSwap(false, true) {
		close(h.asked)
		<-h.goOn
	}
	clear(p)
	return len(p), nil
}

// TestNoReadAfterPut: a source belongs to the caller again when Put returns, even if
// the store has responded before it was sent.
func TestNoReadAfterPut(t *testing.T) {
	source := &halting{first: sized(2000), asked: make(chan struct{}), goOn: make(chan struct{})}
	store := responding(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 1000)
		<-source.asked
		w.WriteHeader(http.StatusForbidden)
	})
	store.keptParts = 0
	returned := make(chan error, 1)
	go func() {
		_, err := store.Put(t.Context(), "k", source, overwrite)
		source.over.Store(true)
		returned <- err
	}()
	<-source.asked
	select {
	case err := <-returned:
		t.Fatalf("it has returned while the source is read: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	close(source.goOn)
	if err := <-returned; err == nil {
		t.Error("stored")
	}
}

// TestBodyEnds: a read of the body of a request fails once the body has ended.
func TestBodyEnds(t *testing.T) {
	b := &body{r: zeros{}}
	if n, err := b.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	b.end()
	if n, err := b.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d more bytes, %v", n, err)
	}
}

// TestMemory: however large an object is, no more is allocated than what is kept.
func TestMemory(t *testing.T) {
	store := responding(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const size = 512 << 20
	if n, err := store.Put(t.Context(), "k", io.LimitReader(zeros{}, size), overwrite); err != nil || n.Size != size {
		t.Fatal(n.Size, err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > kept+(8<<20) {
		t.Errorf("%d MiB were allocated for an object of %d MiB", got>>20, size>>20)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
