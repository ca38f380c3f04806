// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync/atomic"
)

// damageFrom is the size in bytes from which a request is damaged: what is smaller tells the
// store something, and holds no object of a test.
const damageFrom = 64 << 10

// Damage changes the byte at this offset of every large request on its way to the store.
func (p *Proxy) Damage(offset int64) { p.damaged.Store(offset) }

// damage changes a request on its way to the store.
func (p *Proxy) damage(r *http.Request) {
	at := p.damaged.Load()
	if at == 0 || (r.ContentLength >= 0 && r.ContentLength < damageFrom) {
		return
	}
	r.Body = &damagedBody{ReadCloser: r.Body, at: at}
}

type damagedBody struct {
	io.ReadCloser

	at, read int64
}

// Read implements io.Reader.
func (b *damagedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if i := b.at - b.read; i >= 0 && i < int64(n) {
		p[i] ^= 1
	}
	b.read += int64(n)
	return n, err
}

// Intercept lets a function response requests in place of the store; it returns whether it did.
func (p *Proxy) Intercept(response func(w http.ResponseWriter, r *http.Request) bool) {
	p.intercept.Store(&response)
}

// LieAbout makes the store response wrong checksums: of parts, or of whole objects.
func (p *Proxy) LieAbout(parts bool) { p.lies.Store(&lie{parts: parts, change: wrong}) }

// HideChecksums makes the store return no checksums.
func (p *Proxy) HideChecksums() { p.lies.Store(&lie{all: true}) }

// Lied is how many responses were changed.
func (p *Proxy) Lied() int64 {
	if l := p.lies.Load(); l != nil {
		return l.told.Load()
	}
	return 0
}

// lie is what the proxy reports of checksums instead of the truth.
type lie struct {
	// parts: about those of parts; otherwise about those of whole objects, or about all.
	parts, all bool
	// change returns another value; nil to say nothing.
	change func(value string) string
	told   atomic.Int64
}

// wrong returns a value that has the form of the right one.
func wrong(value string) string {
	if value[0] == '1' {
		return "2" + value[1:]
	}
	return "1" + value[1:]
}

// Where stores of each kind tell checksums.
var (
	checksumHeaders = []string{
		"X-Amz-Checksum-Crc64nvme", "X-Amz-Checksum-Algorithm", "X-Amz-Checksum-Type",
		"X-Ms-Content-Crc64", "Content-Md5", "X-Oss-Hash-Crc64ecma",
	}
	checksumTexts = regexp.MustCompile(`(<ChecksumCRC64NVME>|"crc32c": ?")([^<"]+)`)
)

// maxLie bounds the responses that are looked into, in bytes.
const maxLie = 1 << 20

// tell changes a response.
func (l *lie) tell(r *http.Request, response *http.Response) {
	query := r.URL.Query()
	part := query.Has("partNumber") || query.Get("comp") == "block"
	object := r.Method != http.MethodGet && query.Get("comp") != "blocklist" || query.Has("alt")
	if !object || (part != l.parts && !l.all) {
		return
	}
	for _, name := range checksumHeaders {
		value := response.Header.Get(name)
		switch {
		case value == "":
		case l.change == nil:
			response.Header.Del(name)
			l.told.Add(1)
		case name != "X-Amz-Checksum-Algorithm" && name != "X-Amz-Checksum-Type":
			response.Header.Set(name, l.change(value))
			l.told.Add(1)
		}
	}
	if r.Method == http.MethodHead || query.Get("alt") == "media" || response.ContentLength > maxLie {
		return
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		text = nil // the client sees that the response is none
	}
	text = checksumTexts.ReplaceAllFunc(text, func(found []byte) []byte {
		l.told.Add(1)
		at := checksumTexts.FindSubmatch(found)
		if l.change == nil {
			return at[1]
		}
		return append(bytes.Clone(at[1]), l.change(string(at[2]))...)
	})
	response.Body = io.NopCloser(bytes.NewReader(text))
	if response.Header.Get("Content-Length") != "" {
		response.Header.Set("Content-Length", strconv.Itoa(len(text)))
	}
}
