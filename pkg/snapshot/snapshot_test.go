// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"filippo.io/age"

	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// database returns what etcd would send for a database of so many bytes.
func database(size int) []byte {
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	for i := 0; i < size; i += 64 { // half of it compresses
		_, _ = random.Read(data[i:min(i+32, size)])
	}
	sum := sha256.Sum256(data)
	return slices.Concat(data, sum[:])
}

func manifestOf(s Sums, o Options) *manifest.Manifest {
	return &manifest.Manifest{
		Size: s.Size, SHA256: s.SHA256, StoredSize: s.StoredSize, StoredSHA256: s.StoredSHA256,
		Compression: o.Compression(), Encryption: o.Encryption(),
	}
}

// Readers may give any number of bytes at a time, and their end with or after the last.
func readers(data []byte) map[string]io.Reader {
	return map[string]io.Reader{
		"whole":     bytes.NewReader(data),
		"one byte":  iotest.OneByteReader(bytes.NewReader(data)),
		"half":      iotest.HalfReader(bytes.NewReader(data)),
		"early end": iotest.DataErrReader(bytes.NewReader(data)),
	}
}

func TestRoundtrip(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 512, 4096, bufferSize, bufferSize + 512, 3 << 20} {
		data := database(size)
		for name, options := range map[string]Options{
			"plain": {}, "zstd": {Compress: true}, "age": {Recipients: []age.Recipient{identity.Recipient()}},
			"both": {Compress: true, Recipients: []age.Recipient{identity.Recipient()}},
		} {
			for kind, source := range readers(data) {
				if kind == "one byte" && size > 1<<20 {
					continue
				}
				encoder := Encode(source, options)
				stored, err := io.ReadAll(encoder)
				if err != nil {
					t.Fatalf("%d %s %s: %v", size, name, kind, err)
				}
				sums, ok := encoder.Sums()
				encoder.Close()
				plain, coded := sha256.Sum256(data), sha256.Sum256(stored)
				want := Sums{Size: int64(len(data)), SHA256: hex.EncodeToString(plain[:]), StoredSize: int64(len(stored)), StoredSHA256: hex.EncodeToString(coded[:])}
				if !ok || sums != want {
					t.Errorf("%d %s %s: sums %+v, want %+v", size, name, kind, sums, want)
				}
				var identities []age.Identity
				if len(options.Recipients) > 0 {
					identities = append(identities, identity)
				}
				for _, m := range []*manifest.Manifest{manifestOf(sums, options), nil} {
					decoder, err := Decode(bytes.NewReader(stored), m, identities)
					if err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(decoder)
					decoder.Close()
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("%d %s: decoded %d bytes, %v", size, name, len(got), err)
					}
				}
				if err := CheckStored(bytes.NewReader(stored), manifestOf(sums, options)); err != nil {
					t.Errorf("%d %s: %v", size, name, err)
				}
			}
		}
	}
}

// Nothing that etcd did not send whole may look as if it ended well.
// TestGzip: other operators compress so. This program does not, so no manifest may say it.
func TestGzip(t *testing.T) {
	data := database(3 << 20)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	read := func(stored []byte, m *manifest.Manifest) ([]byte, error) {
		d, err := Decode(bytes.NewReader(stored), m, nil)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return io.ReadAll(d)
	}
	if got, err := read(packed.Bytes(), nil); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, broken := range [][]byte{packed.Bytes()[:packed.Len()/2], packed.Bytes()[:5]} {
		if _, err := read(broken, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes of it: %v", len(broken), err)
		}
	}
	if _, err := read(packed.Bytes(), manifestOf(Sums{}, Options{})); !errors.Is(err, ErrCorrupt) {
		t.Errorf("with a manifest: %v", err)
	}
}

func TestEncodeRejects(t *testing.T) {
	data := database(8192)
	errSource := errors.New("broken")
	for name, test := range map[string]struct {
		data []byte
		end  error // of the source, nil for io.EOF
		want error
	}{
		"empty":            {nil, nil, ErrCorrupt},
		"less than a hash": {data[:31], nil, ErrCorrupt},
		"no hash":          {data[:8192], nil, ErrCorrupt},
		"cut":              {data[:5000], nil, ErrCorrupt},
		// Its size looks right.
		"cut at a sector": {data[:4096+32], nil, ErrCorrupt},
		"flipped":         {append([]byte{data[0] ^ 1}, data[1:]...), nil, ErrCorrupt},
		"flipped hash":    {append(bytes.Clone(data[:len(data)-1]), data[len(data)-1]^1), nil, ErrCorrupt},
		"longer":          {append(bytes.Clone(data), 0), nil, ErrCorrupt},
		"broken source":   {data[:5000], errSource, errSource},
		"broken at end":   {data, errSource, errSource},
	} {
		for _, options := range []Options{{}, {Compress: true}} {
			var source io.Reader = bytes.NewReader(test.data)
			if test.end != nil {
				source = io.MultiReader(source, iotest.ErrReader(test.end))
			}
			encoder := Encode(source, options)
			_, err := io.ReadAll(encoder)
			if !errors.Is(err, test.want) {
				t.Errorf("%s: got %v, want %v", name, err, test.want)
			}
			if _, ok := encoder.Sums(); ok {
				t.Errorf("%s: there are sums", name)
			}
			encoder.Close()
		}
	}
}

func TestOnChecked(t *testing.T) {
	errVeto := errors.New("no")
	for _, options := range []Options{{}, {Compress: true}} {
		options.OnChecked = func() error { return errVeto }
		encoder := Encode(bytes.NewReader(database(4096)), options)
		if _, err := io.ReadAll(encoder); !errors.Is(err, errVeto) {
			t.Errorf("got %v", err)
		}
		encoder.Close()
		called := false
		options.OnChecked = func() error { called = true; return nil }
		encoder = Encode(bytes.NewReader(database(4096)[:4000]), options)
		_, _ = io.ReadAll(encoder)
		encoder.Close()
		if called {
			t.Error("called for a snapshot that is cut")
		}
	}
}

// A decoder rejects a manifest that contradicts the data.
func TestManifestAndContentDisagree(t *testing.T) {
	data := database(4096)
	encoder := Encode(bytes.NewReader(data), Options{})
	if _, err := io.ReadAll(encoder); err != nil {
		t.Fatal(err)
	}
	sums, _ := encoder.Sums()
	for name, change := range map[string]func(*manifest.Manifest){
		"size":        func(m *manifest.Manifest) { m.Size++ },
		"sum":         func(m *manifest.Manifest) { m.SHA256 = m.SHA256[1:] + "0" },
		"stored size": func(m *manifest.Manifest) { m.StoredSize-- },
		"stored sum":  func(m *manifest.Manifest) { m.StoredSHA256 = "" },
		"compression": func(m *manifest.Manifest) { m.Compression = manifest.CompressionZstd },
		"encryption":  func(m *manifest.Manifest) { m.Encryption = manifest.EncryptionAge },
	} {
		m := manifestOf(sums, Options{})
		change(m)
		decoder, err := Decode(bytes.NewReader(data), m, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, decoder)
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
}

// An error of the store is not taken for one of the content.
func TestDecodeKeepsStoreErrors(t *testing.T) {
	errStore := errors.New("the store broke")
	encoder := Encode(bytes.NewReader(database(1<<20)), Options{Compress: true})
	stored, err := io.ReadAll(encoder)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 2, 100, len(stored) / 2, len(stored)} {
		decoder, err := Decode(io.MultiReader(bytes.NewReader(stored[:at]), iotest.ErrReader(errStore)), nil, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, decoder)
		}
		if !errors.Is(err, errStore) || errors.Is(err, ErrCorrupt) {
			t.Errorf("after %d bytes: got %v", at, err)
		}
	}
}
