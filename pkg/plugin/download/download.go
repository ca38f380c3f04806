// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Suffix of the temporary file.
const Suffix = ".part"

// pageSize is the unit of a database file. A snapshot is whole pages and a hash.
const pageSize = 512

// Errors of Save.
var (
	// ErrExists means that the file exists.
	ErrExists = errors.New("the file exists")
	// ErrIncomplete means that the stream ended too early.
	ErrIncomplete = errors.New("the snapshot is incomplete")
	// ErrDamaged means that the hash at the end of the snapshot is not that of its data.
	ErrDamaged = errors.New("the snapshot is damaged")
)

// Result is what was saved.
type Result struct {
	// Bytes of the file.
	Bytes int64
	// SHA256 of the database, in hexadecimal; etcd has written it at the end of the file.
	SHA256 string
}

// Save copies a stream to a file that must not exist. Size is the length that the server
// announces, or -1. Show is called with the number of bytes so far. A file that is incomplete
// or damaged is removed.
func Save(ctx context.Context, from io.Reader, file string, size int64, show func(int64)) (*Result, error) {
	if err := CheckNew(file); err != nil {
		return nil, err
	}
	part := file + Suffix
	// The snapshot holds every key, so only the user may read it.
	out, err := os.OpenFile(filepath.Clean(part), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w: %s is left from another attempt, or another attempt writes it; remove it", ErrExists, part)
	}
	if err != nil {
		return nil, fmt.Errorf("create the temporary file: %w", err)
	}
	result, err := copyChecked(ctx, out, from, size, show)
	if err == nil {
		err = out.Sync()
	}
	if closeErr := out.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("write %s: %w", part, closeErr)
	}
	if err == nil {
		err = publish(part, file)
	}
	if err != nil {
		return nil, errors.Join(err, remove(part))
	}
	return result, nil
}

// CheckNew returns ErrExists if a file exists.
func CheckNew(file string) error {
	_, err := os.Lstat(file)
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s; remove it, or choose another name", ErrExists, file)
	case errors.Is(err, os.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("look for %s: %w", file, err)
	}
}

// publish gives the temporary file its name, unless a file of that name was made meanwhile.
func publish(part, file string) error {
	if err := CheckNew(file); err != nil {
		return err
	}
	if err := os.Rename(part, file); err != nil {
		return fmt.Errorf("name the snapshot: %w", err)
	}
	directory, err := os.Open(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("write the directory to the disk: %w", err)
	}
	defer func() { _ = directory.Close() }() // it was opened for Sync only
	if err := directory.Sync(); err != nil {
		return fmt.Errorf("write the directory to the disk: %w", err)
	}
	return nil
}

func remove(part string) error {
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the temporary file: %w", err)
	}
	return nil
}

// copyChecked copies the stream, and compares the hash at its end with that of the data.
func copyChecked(ctx context.Context, to io.Writer, from io.Reader, size int64, show func(int64)) (*Result, error) {
	hash := sha256.New()
	buffer := make([]byte, 256<<10)
	var tail []byte // the last bytes, which may be the hash
	var total int64
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, readErr := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return nil, fmt.Errorf("write the snapshot: %w", err)
			}
			tail = append(tail, buffer[:n]...)
			if data := len(tail) - sha256.Size; data > 0 {
				hash.Write(tail[:data]) // a hash returns no error
				tail = append(tail[:0], tail[data:]...)
			}
			total += int64(n)
			show(total)
		}
		if errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil {
			return nil, fmt.Errorf("%w: the stream ended after %d bytes: %w; send the request again", ErrIncomplete, total, readErr)
		}
	}
	switch sum := hash.Sum(nil); {
	case size >= 0 && total != size:
		return nil, fmt.Errorf("%w: %d of %d bytes arrived; send the request again", ErrIncomplete, total, size)
	case total%pageSize != sha256.Size:
		return nil, fmt.Errorf("%w: %d bytes are no whole pages with a hash behind them; send the request again", ErrIncomplete, total)
	case !bytes.Equal(sum, tail):
		return nil, fmt.Errorf("%w: the hash at its end is %x, and that of its data is %x; send the request again", ErrDamaged, tail, sum)
	default:
		return &Result{Bytes: total, SHA256: fmt.Sprintf("%x", sum)}, nil
	}
}
