// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// zstdWindow bounds the memory of both sides, in bytes.
const zstdWindow = 1 << 20

// Options say how a snapshot is stored.
type Options struct {
	Compress bool
	// Recipients are the keys that can decrypt it. Empty: it is not encrypted.
	Recipients []age.Recipient
	// OnChecked is called when the whole snapshot was read and found good, before
	// the reader says so. Its error ends the stream.
	OnChecked func() error
}

// Compression is the name of it in a manifest.
func (o Options) Compression() string {
	if o.Compress {
		return manifest.CompressionZstd
	}
	return ""
}

// Encryption is the name of it in a manifest.
func (o Options) Encryption() string {
	if len(o.Recipients) > 0 {
		return manifest.EncryptionAge
	}
	return ""
}

// Sums are what a stream adds up to. They are known when it has ended well.
type Sums struct {
	// Size and SHA256 of the snapshot as etcd sent it.
	Size   int64
	SHA256 string
	// StoredSize and StoredSHA256 of what is stored.
	StoredSize   int64
	StoredSHA256 string
	// StorageVersion is the version of the data as the snapshot itself has it: that of its
	// storage, or that of the cluster before etcd 3.6. It is empty if etcd had written
	// neither, as in the first moments of a cluster. Only an Encoder knows it.
	StorageVersion string
}

// Encoder reads a snapshot as it is stored. Close it.
type Encoder struct {
	input  *checked
	output io.Reader
	pipe   *io.PipeReader // nil if nothing is changed on the way
	done   chan struct{}
	stored int64
	sum    hash.Hash
}

// Encode returns a reader of what is to be stored of the snapshot that source gives.
// Source must end when its own context does.
func Encode(source io.Reader, options Options) *Encoder {
	input := newChecked(source, options.OnChecked)
	input.pages = newPageReader()
	e := &Encoder{input: input, output: input}
	if options.Compression() == "" && options.Encryption() == "" {
		return e // stored as it is: one sum is that of both
	}
	reader, writer := io.Pipe()
	e.output, e.pipe, e.sum, e.done = reader, reader, sha256.New(), make(chan struct{})
	go func() {
		defer close(e.done)
		writer.CloseWithError(transform(writer, input, options))
	}()
	return e
}

// transform compresses and encrypts; its error ends the pipe, nil as its proper end.
func transform(w io.Writer, r io.Reader, options Options) error {
	var closers []io.Closer
	if len(options.Recipients) > 0 {
		encrypted, err := age.Encrypt(w, options.Recipients...)
		if err != nil {
			return fmt.Errorf("encrypting: %w", err)
		}
		w, closers = encrypted, append(closers, encrypted)
	}
	if options.Compress {
		compressed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow))
		if err != nil {
			return fmt.Errorf("compressing: %w", err)
		}
		w, closers = compressed, append(closers, compressed)
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, bufferSize)); err != nil {
		return err // nothing is closed: an end would make it look whole
	}
	for i := len(closers) - 1; i >= 0; i-- {
		if err := closers[i].Close(); err != nil {
			return err
		}
	}
	return nil
}

// Read implements io.Reader.
func (e *Encoder) Read(p []byte) (int, error) {
	n, err := e.output.Read(p)
	e.stored += int64(n)
	if e.sum != nil {
		e.sum.Write(p[:n])
	}
	return n, err
}

// Sums returns what the stream added up to; ok is false unless it ended well.
func (e *Encoder) Sums() (sums Sums, ok bool) {
	if !errors.Is(e.input.err, io.EOF) {
		return Sums{}, false
	}
	sums = Sums{Size: e.input.size, SHA256: e.input.sum, StoredSize: e.stored, StoredSHA256: e.input.sum}
	sums.StorageVersion = e.input.pages.versions().version()
	if e.sum != nil {
		sums.StoredSHA256 = hex.EncodeToString(e.sum.Sum(nil))
	}
	return sums, true
}

// Close ends what runs in the background. The source must have ended, or end soon.
func (e *Encoder) Close() error {
	if e.pipe == nil {
		return nil
	}
	err := e.pipe.Close()
	<-e.done
	return err
}
