// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// ErrCorrupt means that what was read is not what was written, or not all of it.
var ErrCorrupt = errors.New("the snapshot is corrupt")

const (
	// trailerSize is that of the SHA-256 which etcd sends after the database.
	trailerSize = sha256.Size
	// sectorSize divides the size of every database.
	sectorSize = 512
	bufferSize = 256 << 10
)

// checked reads a snapshot and ends well only if the hash at its end is right: the
// last bytes are held back until then.
type checked struct {
	source   io.Reader
	database hash.Hash   // of all before the trailer
	pages    *pageReader // of the same; nil if the versions are not requested
	buffer   []byte
	start    int // of what can be handed out or held back
	end      int
	ended    bool
	err      error
	size     int64
	sum      string // of the whole, set at the end
	onEnd    func() error
}

// newChecked reads from source. onEnd, if not nil, is called once all checks have
// passed; its error becomes that of the reader.
func newChecked(source io.Reader, onEnd func() error) *checked {
	return &checked{source: source, database: sha256.New(), buffer: make([]byte, bufferSize+trailerSize), onEnd: onEnd}
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	for {
		available := c.end - c.start
		if !c.ended {
			available -= trailerSize
		}
		if available > 0 {
			n := copy(p, c.buffer[c.start:c.start+available])
			if !c.ended {
				c.database.Write(c.buffer[c.start : c.start+n])
				if c.pages != nil {
					c.pages.add(c.buffer[c.start : c.start+n])
				}
			}
			c.start += n
			return n, nil
		}
		if c.err != nil {
			return 0, c.err
		}
		c.fill()
	}
}

// fill reads more, or finds the end.
func (c *checked) fill() {
	copy(c.buffer, c.buffer[c.start:c.end])
	c.end -= c.start
	c.start = 0
	n, err := c.source.Read(c.buffer[c.end:])
	c.end += n
	c.size += int64(n)
	switch {
	case err == nil:
	case !errors.Is(err, io.EOF):
		c.err = err
	case c.end-c.start > trailerSize:
		// What came before the trailer goes out first; the source repeats its end.
	default:
		c.err = c.finish()
	}
}

// finish checks the trailer, which is all that is left.
func (c *checked) finish() error {
	if c.end-c.start < trailerSize || c.size%sectorSize != trailerSize {
		return fmt.Errorf("%w: %d bytes are not a database with a hash at its end: it was cut", ErrCorrupt, c.size)
	}
	trailer := c.buffer[c.start:c.end]
	if !bytes.Equal(c.database.Sum(nil), trailer) {
		return fmt.Errorf("%w: its content does not have the hash at its end", ErrCorrupt)
	}
	// The sum of the whole goes on from that of the database.
	c.database.Write(trailer)
	c.sum = hex.EncodeToString(c.database.Sum(nil))
	if c.onEnd != nil {
		if err := c.onEnd(); err != nil {
			return err
		}
	}
	c.ended = true
	return io.EOF
}
