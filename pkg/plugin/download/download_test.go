// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/download"
)

// snapshotOf returns pages and the hash of them, as etcd sends them.
func snapshotOf(pages int) []byte {
	data := bytes.Repeat([]byte("abcdefgh"), pages*512/8)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

func TestSave(t *testing.T) {
	good := snapshotOf(2000)
	damaged := bytes.Clone(good)
	damaged[77] ^= 1
	errCut := errors.New("cut")
	for name, c := range map[string]struct {
		from io.Reader
		size int64
		want error
	}{
		"a whole snapshot":              {from: bytes.NewReader(good), size: int64(len(good))},
		"a whole one byte by byte":      {from: iotest.OneByteReader(bytes.NewReader(snapshotOf(3))), size: -1},
		"a reader with data and EOF":    {from: iotest.DataErrReader(bytes.NewReader(good)), size: -1},
		"a changed byte":                {from: bytes.NewReader(damaged), size: int64(len(good)), want: download.ErrDamaged},
		"an error in the stream":        {from: io.MultiReader(bytes.NewReader(good[:600]), iotest.ErrReader(errCut)), size: -1, want: errCut},
		"a stream that ends early":      {from: bytes.NewReader(good[:1024]), size: int64(len(good)), want: download.ErrIncomplete},
		"whole pages without a hash":    {from: bytes.NewReader(good[:1024]), size: -1, want: download.ErrIncomplete},
		"nothing":                       {from: bytes.NewReader(nil), size: -1, want: download.ErrIncomplete},
		"less than a hash":              {from: bytes.NewReader(good[:7]), size: -1, want: download.ErrIncomplete},
		"a hash of nothing and no page": {from: bytes.NewReader(make([]byte, 32)), size: 32, want: download.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "copy.db")
			var last int64
			result, err := download.Save(t.Context(), c.from, file, c.size, func(n int64) { last = n })
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if _, err := os.Lstat(file + download.Suffix); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the temporary file is left: %v", err)
			}
			info, err := os.Stat(file)
			if c.want != nil {
				if !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a file exists after an error: %v", err)
				}
				return
			}
			if err != nil || info.Size() != result.Bytes || last != result.Bytes || info.Mode().Perm() != 0o600 || len(result.SHA256) != 64 {
				t.Errorf("%v %+v %+v", err, info, result)
			}
		})
	}
}

func TestSaveKeepsWhatExists(t *testing.T) {
	for _, existing := range []string{"copy.db", "copy.db.part"} {
		t.Run(existing, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, existing)
			if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := download.Save(t.Context(), bytes.NewReader(snapshotOf(1)), filepath.Join(dir, "copy.db"), -1, func(int64) {})
			if !errors.Is(err, download.ErrExists) {
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadFile(path); err != nil || string(left) != "mine" {
				t.Errorf("%s is %q: %v", existing, left, err)
			}
		})
	}
}

func TestSaveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "copy.db")
	_, err := download.Save(ctx, iotest.OneByteReader(bytes.NewReader(snapshotOf(4))), file, -1, func(int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
