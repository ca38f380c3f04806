// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bufio"
	"bytes"
	"compress/gzip"
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

var (
	// ErrEncrypted means that the backup is encrypted and none of the identities opens it.
	ErrEncrypted = errors.New("the backup is encrypted")
	// ErrNotEncrypted means that identities were given for a backup that is not encrypted.
	// A program that may write to the store can have put it there in place of an encrypted one.
	ErrNotEncrypted = errors.New("the backup is not encrypted")

	ageMagic  = []byte("age-encryption.org/")
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// maxDecoderWindow bounds the memory of a decoder, in bytes. Other programs may have
// compressed with a larger window than this program does.
const maxDecoderWindow = 32 << 20

// Decoder reads the snapshot that is in a stored backup. Close it.
type Decoder struct {
	output   *checked
	stored   *summed
	manifest *manifest.Manifest
	zstd     *zstd.Decoder
	err      error
}

// Decode returns a reader of the snapshot as etcd sent it. It ends well only if all
// that was stored was read and agrees with m. Without a manifest, as older programs
// stored backups, m is nil: how it was stored is then seen from its first bytes, and
// only etcd's own hash is checked. With identities the backup must be encrypted. Errors
// match ErrCorrupt, ErrEncrypted, ErrNotEncrypted, or are those of stored.
func Decode(stored io.Reader, m *manifest.Manifest, identities []age.Identity) (*Decoder, error) {
	d := &Decoder{stored: &summed{source: stored, sum: sha256.New()}, manifest: m}
	buffered := bufio.NewReaderSize(d.stored, bufferSize)
	var r io.Reader = buffered
	if has, err := d.is(buffered, ageMagic, m != nil && m.Encryption == manifest.EncryptionAge); err != nil {
		return nil, err
	} else if has {
		if len(identities) == 0 {
			return nil, fmt.Errorf("%w: give the Secret with the age identities that open it", ErrEncrypted)
		}
		decrypted, err := age.Decrypt(buffered, identities...)
		if err != nil {
			return nil, d.openFailed(err)
		}
		buffered = bufio.NewReaderSize(decrypted, bufferSize)
		r = buffered
	} else if len(identities) > 0 {
		return nil, ErrNotEncrypted
	}
	if has, err := d.is(buffered, zstdMagic, m != nil && m.Compression == manifest.CompressionZstd); err != nil {
		return nil, err
	} else if has {
		decoder, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxDecoderWindow))
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		d.zstd, r = decoder, decoder
	} else if m == nil {
		if r, err = d.gunzip(buffered); err != nil {
			return nil, err
		}
	}
	d.output = newChecked(r, nil)
	return d, nil
}

// is looks whether the stream begins with magic. A manifest says it too, and then
// the two must agree.
func (d *Decoder) is(r *bufio.Reader, magic []byte, size bool) (bool, error) {
	begin, err := r.Peek(len(magic))
	if err != nil && !errors.Is(err, io.EOF) {
		return false, d.sourceFailed(err)
	}
	found := bytes.Equal(begin, magic)
	if d.manifest != nil && found != size {
		return false, fmt.Errorf("%w: it does not begin as its manifest says", ErrCorrupt)
	}
	return found, nil
}

// gunzip opens what other operators have compressed; this program compresses nothing so.
func (d *Decoder) gunzip(r *bufio.Reader) (io.Reader, error) {
	if has, err := d.is(r, gzipMagic, false); err != nil || !has {
		return r, err
	}
	decoder, err := gzip.NewReader(r)
	if err != nil {
		return nil, d.sourceFailed(err)
	}
	return decoder, nil
}

func (d *Decoder) openFailed(err error) error {
	var none *age.NoIdentityMatchError
	switch {
	case d.stored.failed != nil:
		return d.stored.failed
	case errors.As(err, &none):
		return d.notOpened()
	default:
		return fmt.Errorf("%w: decrypting: %w", ErrCorrupt, err)
	}
}

// notOpened tells a wrong identity from damage where the identities are named: for both
// age says that none matches.
func (d *Decoder) notOpened() error {
	if d.manifest != nil {
		if err := d.stored.agrees(d.manifest); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: none of the identities opens it", ErrEncrypted)
}

// sourceFailed tells an error of the store from one of the content.
func (d *Decoder) sourceFailed(err error) error {
	if d.stored.failed != nil {
		return d.stored.failed
	}
	if errors.Is(err, ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// Read implements io.Reader.
func (d *Decoder) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.output.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		d.err = d.finish()
	default:
		d.err = d.sourceFailed(err)
	}
	return n, d.err
}

// finish compares the sums with the manifest.
func (d *Decoder) finish() error {
	if _, err := io.Copy(io.Discard, d.stored); err != nil {
		return d.sourceFailed(err)
	}
	if d.manifest == nil {
		return io.EOF
	}
	if err := CheckSums(d.sums(), d.manifest); err != nil {
		return err
	}
	return io.EOF
}

func (d *Decoder) sums() Sums {
	return Sums{
		Size: d.output.size, SHA256: d.output.sum,
		StoredSize: d.stored.size, StoredSHA256: hex.EncodeToString(d.stored.sum.Sum(nil)),
	}
}

// Sums returns what the stream added up to; ok is false unless it ended well.
func (d *Decoder) Sums() (sums Sums, ok bool) {
	if !errors.Is(d.err, io.EOF) {
		return Sums{}, false
	}
	return d.sums(), true
}

// Close releases the decoder's memory.
func (d *Decoder) Close() error {
	if d.zstd != nil {
		d.zstd.Close()
	}
	return nil
}

// CheckStored reads what is stored to its end and compares it with the manifest. It
// needs no identity. The error matches ErrCorrupt, or is that of stored.
func CheckStored(stored io.Reader, m *manifest.Manifest) error {
	return (&summed{source: stored, sum: sha256.New()}).agrees(m)
}

// CheckSums compares sums with a manifest. The error matches ErrCorrupt.
func CheckSums(got Sums, m *manifest.Manifest) error {
	switch {
	case got.StoredSize != m.StoredSize:
		return fmt.Errorf("%w: %d bytes are stored, its manifest says %d", ErrCorrupt, got.StoredSize, m.StoredSize)
	case got.StoredSHA256 != m.StoredSHA256:
		return fmt.Errorf("%w: what is stored has another SHA-256 than its manifest says", ErrCorrupt)
	case got.Size != m.Size:
		return fmt.Errorf("%w: it has %d bytes, its manifest says %d", ErrCorrupt, got.Size, m.Size)
	case got.SHA256 != m.SHA256:
		return fmt.Errorf("%w: it has another SHA-256 than its manifest says", ErrCorrupt)
	}
	return nil
}

// summed adds up what it reads, and remembers how the source failed.
type summed struct {
	source io.Reader
	sum    hash.Hash
	size   int64
	failed error
}

// agrees reads the rest and compares all that was read with the manifest.
func (s *summed) agrees(m *manifest.Manifest) error {
	if _, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{s}, make([]byte, bufferSize)); err != nil {
		return err
	}
	return CheckSums(Sums{Size: m.Size, SHA256: m.SHA256, StoredSize: s.size, StoredSHA256: hex.EncodeToString(s.sum.Sum(nil))}, m)
}

// Read implements io.Reader.
func (s *summed) Read(p []byte) (int, error) {
	n, err := s.source.Read(p)
	s.sum.Write(p[:n])
	s.size += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}
