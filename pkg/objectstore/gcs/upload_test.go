// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

var (
	errSource = errors.New("the source broke")
	overwrite = objectstore.PutOptions{Overwrite: true}
)

// kept is how much of an object is kept while it is sent, in bytes.
const kept = keptParts * objectstore.PartSize

// sized is a source of n bytes that does not say how many it has.
func sized(n int64) io.Reader { return io.LimitReader(rand.Reader, n) }

// broken gives n bytes and then fails.
func broken(n int64) io.Reader { return io.MultiReader(sized(n), failing{}) }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errSource }

// recorder notes the requests to a store.
type recorder struct {
	http.RoundTripper

	mu   sync.Mutex
	asks []*http.Request
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.asks = append(r.asks, request)
	r.mu.Unlock()
	return r.RoundTripper.RoundTrip(request)
}

// writes are the requests that may change something.
func (r *recorder) writes() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var writes []*http.Request
	for _, ask := range r.asks {
		if ask.Method != http.MethodGet {
			writes = append(writes, ask)
		}
	}
	return writes
}

// bucketOf opens a new bucket of a real server.
func bucketOf(t *testing.T) *Store {
	t.Helper()
	store := open(t, storetest.GCS(t), "backups", nil)
	if _, err := store.service.Buckets.Insert("p", &storage.Bucket{Name: store.bucket}).Do(); err != nil {
		t.Fatal(err)
	}
	return store
}

func mustBeEmpty(t *testing.T, store *Store) {
	t.Helper()
	for object, err := range store.List(t.Context(), "") {
		t.Errorf("visible: %+v, %v", object, err)
	}
}

// TestNoSession: each object is one request, whatever is stored and however it ends, so no
// session is left open.
func TestNoSession(t *testing.T) {
	store := bucketOf(t)
	record := &recorder{RoundTripper: store.client.Transport}
	store.client.Transport = record
	puts := 0
	for _, size := range []int64{0, 1, askFrom, objectstore.PartSize, kept - 1, kept, kept + 1, kept + objectstore.PartSize} {
		for _, options := range []objectstore.PutOptions{{}, overwrite} {
			puts++
			if n, err := store.Put(t.Context(), "k", sized(size), options); err != nil || n.Size != size {
				t.Fatalf("%d bytes: %d, %v", size, n.Size, err)
			}
			last := record.writes()[len(record.writes())-1].URL.Query()
			if conditional := last.Get("ifGenerationMatch") == "0"; conditional == options.Overwrite {
				t.Errorf("%d bytes, %+v: the condition is %v", size, options, conditional)
			}
			if object, err := store.Stat(t.Context(), "k"); err != nil || object.Size != size {
				t.Errorf("%d bytes: %+v, %v", size, object, err)
			}
		}
		if err := store.Delete(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}
	puts++
	if _, err := store.Put(t.Context(), "k", broken(kept+1), overwrite); !errors.Is(err, errSource) {
		t.Error(err)
	}
	for _, request := range record.writes() {
		if request.Method == http.MethodDelete {
			continue
		}
		puts--
		if request.Method != http.MethodPost || request.URL.Query().Get("uploadType") != "multipart" || request.URL.Query().Has("upload_id") {
			t.Errorf("%s %s", request.Method, request.URL)
		}
	}
	if puts != 0 {
		t.Errorf("%d requests too few", puts)
	}
}

// TestInterruptedLeavesNothing interrupts uploads to a real server at many places: the
// source fails, or the caller cancels.
func TestInterruptedLeavesNothing(t *testing.T) {
	store := bucketOf(t)
	for _, size := range []int64{0, 1000, kept, kept + 1, kept + 2*objectstore.PartSize} {
		if _, err := store.Put(t.Context(), "k", broken(size), objectstore.PutOptions{}); !errors.Is(err, errSource) {
			t.Errorf("a source that fails after %d: %v", size, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := store.Put(ctx, "k", io.MultiReader(sized(size), calling(cancel), sized(1<<40)), objectstore.PutOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled after %d: %v", size, err)
		}
		mustBeEmpty(t, store)
	}
}

// calling is called and gives nothing.
type calling func()

func (f calling) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// dying is a connection of a process that is killed when it has sent so much.
type dying struct {
	net.Conn

	sent *atomic.Int64
	max  int64
	kill func()
}

func (c *dying) Write(p []byte) (int, error) {
	over := c.sent.Add(int64(len(p))) - c.max
	if over <= 0 {
		return c.Conn.Write(p)
	}
	n, _ := c.Conn.Write(p[:max(0, int64(len(p))-over)])
	_ = c.Conn.Close()
	c.kill()
	return n, net.ErrClosed
}

// TestKilledWithinUpload kills within an upload to a real server, and at each of the last
// bytes of it: there is nothing, or all of it.
func TestKilledWithinUpload(t *testing.T) {
	store := bucketOf(t)
	for _, parts := range []int{0, keptParts} {
		const size = 2 << 20
		put := func(limit int64) (int64, error) {
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			transport := storetest.Transport(t, nil)
			dial, config, sent := transport.DialContext, transport.TLSClientConfig.Clone(), atomic.Int64{}
			config.ServerName = "localhost"
			// The bytes of the request are counted, not those of TLS.
			transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &dying{Conn: tls.Client(conn, config), sent: &sent, max: limit, kill: kill}, nil
			}
			killed := openOver(t, strings.TrimSuffix(store.service.BasePath, servicePath), store.bucket, transport)
			killed.keptParts = parts
			_, err := killed.Put(ctx, "k", sized(size), overwrite)
			return sent.Load(), err
		}
		all, err := put(1 << 40)
		if err != nil {
			t.Fatal(err)
		}
		limits := []int64{100, 1000, size / 2, size}
		for last := range int64(100) {
			limits = append(limits, all-1-last)
		}
		nothing := 0
		for _, limit := range limits {
			if err := store.Delete(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			if _, err := put(limit); err == nil {
				t.Errorf("killed after %d of %d bytes, and stored", limit, all)
			}
			switch object, err := store.Stat(t.Context(), "k"); {
			case errors.Is(err, objectstore.ErrNotFound):
				nothing++
			case err != nil || object.Size != size:
				t.Errorf("killed after %d of %d bytes: %+v, %v", limit, all, object, err)
			}
		}
		// Of the last bytes, about 70 are the closing boundary and what ends the request.
		if nothing < len(limits)-80 {
			t.Errorf("only %d of %d kills left nothing", nothing, len(limits))
		}
		t.Logf("%d of %d kills left nothing", nothing, len(limits))
		if err := store.Delete(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}
}
