// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"sync"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	// keptParts of a source are read before anything is sent, and kept, so that the request
	// can be sent again while no more than they no longer exist. It is as much as uploads in parts
	// keep at other stores.
	keptParts = 3
	// askFrom is the size from which a request waits until the store accepts the object, before
	// all of it is sent.
	askFrom = 1 << 20
)

// errEarly: the store said that it has the object before it was sent.
var errEarly = errors.New("the store responded before it had all of the object")

// upload sends one object in one request. There is no session to
// end: the object comes to be when the request has come whole, and a request that was cut
// leaves nothing. The end is marked twice, by the last chunk and by the closing boundary;
// what breaks off has neither.
//
// The client of the library is not used for this: if a source fails, it still writes the
// closing boundary, and only the last chunk is missing.
type upload struct {
	store   *Store
	key     string
	options objectstore.PutOptions
	// kept is what the source gave first, rest what may follow; nil if nothing does.
	kept [][]byte
	rest *source
}

// read fills what is kept.
func (u *upload) read(ctx context.Context, r io.Reader) (int64, error) {
	size, total := objectstore.PartSize, int64(0)
	if known, ok := r.(interface{ Len() int }); ok {
		size = min(size, known.Len()+1)
	}
	for range u.store.keptParts {
		part := make([]byte, size)
		n, err := objectstore.ReadPart(ctx, r, part)
		total += int64(n)
		u.kept = append(u.kept, part[:n])
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
	u.rest = &source{ctx: ctx, r: r, sum: u.keptSum()}
	return total, nil
}

// again is true if it may be sent once more after this error.
func (u *upload) again(err error) bool {
	return isPassing(err) && !errors.Is(err, errEarly) && (u.rest == nil || !u.rest.begun)
}

// send makes the request and returns what the store says of the object. When it returns, nothing
// reads from the source any more.
func (u *upload) send(ctx context.Context) (*storage.Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	head, tail, contentType, err := u.frame()
	if err != nil {
		return nil, err
	}
	content, length := []io.Reader{bytes.NewReader(head)}, int64(len(head)+len(tail))
	for _, part := range u.kept {
		content, length = append(content, bytes.NewReader(part)), length+int64(len(part))
	}
	if u.rest != nil {
		content = append(content, u.rest)
	}
	end := bytes.NewReader(tail)
	body := &body{r: io.MultiReader(append(content, end)...)}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url(), body)
	if err != nil {
		return nil, err
	}
	googleapi.Expand(request.URL, map[string]string{"bucket": u.store.bucket})
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", googleapi.UserAgent)
	if u.rest == nil {
		request.ContentLength = length
	}
	if u.rest != nil || length >= askFrom {
		request.Header.Set("Expect", "100-continue")
	}
	response, err := u.store.client.Do(request)
	if err == nil {
		defer response.Body.Close()
		err = googleapi.CheckResponse(response)
	}
	if err != nil {
		cancel()
	}
	body.end() // before the response is read: what is sent meanwhile would hide that it came early
	switch {
	case u.rest != nil && u.rest.err != nil:
		return nil, u.rest.err
	case err != nil:
		return nil, err
	case end.Len() > 0:
		return nil, errEarly
	}
	return described(response.Body), nil
}

// maxResponse bounds what is read of a response, in bytes.
const maxResponse = 1 << 20

// described reads what a store says of an object that it has stored. A response that breaks off
// says nothing of the object, which is there all the same.
func described(response io.Reader) *storage.Object {
	object := &storage.Object{}
	if err := json.NewDecoder(io.LimitReader(response, maxResponse)).Decode(object); err != nil {
		return &storage.Object{}
	}
	return object
}

// keptSum is the checksum of what is kept.
func (u *upload) keptSum() uint32 {
	sum := uint32(0)
	for _, part := range u.kept {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// compare looks at the checksum that the store has of an object that is visible now, and
// returns its name. A store that did not return it may still return it on request.
func (u *upload) compare(ctx context.Context, stored *storage.Object) (string, error) {
	got := stored.Crc32c
	if got == "" && u.options.Prove {
		call := u.store.service.Objects.Get(u.store.bucket, u.key).Context(ctx)
		asked, err := retry(ctx, isPassing, func() (*storage.Object, error) { return call.Do() })
		if err != nil {
			return "", nil //nolint:nilerr // it is stored, and not proved: it is read then, which says what is wrong
		}
		got = asked.Crc32c
	}
	if got == "" {
		return "", nil
	}
	sum := u.keptSum()
	if u.rest != nil {
		sum = u.rest.sum
	}
	want := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
	if got != want {
		return "", objectstore.Withdraw(ctx, u.store, u.key, objectstore.Damaged(u.key, objectstore.ChecksumCRC32C, want, got))
	}
	return objectstore.ChecksumCRC32C, nil
}

func (u *upload) url() string {
	query := url.Values{"uploadType": {"multipart"}, "alt": {"json"}, "prettyPrint": {"false"}}
	if !u.options.Overwrite {
		query.Set("ifGenerationMatch", "0")
	}
	return googleapi.ResolveRelative(u.store.service.BasePath, "/upload/storage/v1/b/{bucket}/o") + "?" + query.Encode()
}

// frame returns what stands before and after the content, and the content type of all.
func (u *upload) frame() (head, tail []byte, contentType string, err error) {
	name, err := json.Marshal(&storage.Object{Name: u.key, StorageClass: u.store.class})
	if err != nil {
		return nil, nil, "", err
	}
	var frame bytes.Buffer
	w := multipart.NewWriter(&frame)
	part, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json"}})
	if err == nil {
		_, err = part.Write(name)
	}
	if err == nil {
		_, err = w.CreatePart(textproto.MIMEHeader{"Content-Type": {u.options.Type()}})
	}
	head = bytes.Clone(frame.Bytes())
	frame.Reset()
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, nil, "", fmt.Errorf("framing: %w", err)
	}
	return head, frame.Bytes(), "multipart/related; boundary=" + w.Boundary(), nil
}

// source remembers how r ended, and ends with its context.
type source struct {
	ctx context.Context //nolint:containedctx // a reader has no context of its own
	r   io.Reader
	n   int64
	// sum is the checksum of the object up to here.
	sum uint32
	// begun is true once something may be gone that was not kept.
	begun bool
	err   error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	s.begun = true
	if s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
		return 0, s.err
	}
	n, err := s.r.Read(p)
	s.n += int64(n)
	s.sum = crc32.Update(s.sum, castagnoli, p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// body is that of a request, which may read it even after it was acknowledged.
type body struct {
	mu   sync.Mutex
	r    io.Reader
	over bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.r.Read(p)
}

// Close implements io.Closer. The source belongs to the caller.
func (b *body) Close() error { return nil }

// end waits for the reader, and prevents further reads.
func (b *body) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}
