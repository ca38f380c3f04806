// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// sizes are those of an object that is sent at once and of one that is sent in parts.
var sizes = map[string]int{"small": 2 * damageFrom, "large": large}

var prove = objectstore.PutOptions{Prove: true}

// proof lets the store tell the checksum of what it has.
func (s *suite) proof(t *testing.T) {
	ctx, store, at := s.context(t), s.Open(t), prefix(t)
	for name, size := range sizes {
		data := random(t, size)
		written, err := store.Put(ctx, at+name, unsized{bytes.NewReader(data)}, prove)
		if err != nil || written.Size != int64(size) {
			t.Fatalf("%s: %+v, %v", name, written, err)
		}
		if (written.Checksum != "") != s.Proves {
			t.Errorf("%s: proved by %q; want a proof: %t", name, written.Checksum, s.Proves)
		}
		mustHave(ctx, t, store, at+name, data)
	}
}

// noProof lets the store tell no checksum: it is used all the same, and nothing is proved.
func (s *suite) noProof(t *testing.T) {
	store, proxy := s.through(t)
	ctx, at := s.context(t), prefix(t)
	proxy.HideChecksums()
	for name, size := range sizes {
		data := random(t, size)
		written, err := store.Put(ctx, at+name, unsized{bytes.NewReader(data)}, prove)
		if err != nil || written.Checksum != "" {
			t.Errorf("%s: %+v, %v", name, written, err)
		}
		mustHave(ctx, t, store, at+name, data)
	}
	if proxy.Lied() == 0 {
		t.Error("no checksum was hidden: nothing was tested")
	}
}

// damagedUpload changes one byte on its way to the store.
func (s *suite) damagedUpload(t *testing.T) {
	store, proxy := s.through(t)
	ctx := s.context(t)
	for name, size := range sizes {
		at := prefix(t)
		proxy.Damage(damageFrom + 1000)
		_, err := store.Put(ctx, at+name, unsized{bytes.NewReader(random(t, size))}, prove)
		mustBe(t, name, err, objectstore.ErrDamaged)
		proxy.Heal()
		s.nothingLeft(ctx, t, store, at)
	}
}

// wrongChecksum makes the store response the checksum of something else, of one part or of the
// whole object.
func (s *suite) wrongChecksum(t *testing.T) {
	store, proxy := s.through(t)
	ctx := s.context(t)
	for name, size := range sizes {
		lied := false
		for _, parts := range []bool{true, false} {
			at := prefix(t)
			proxy.LieAbout(parts)
			_, err := store.Put(ctx, at+name, unsized{bytes.NewReader(random(t, size))}, prove)
			if proxy.Lied() == 0 {
				continue // this store tells no such checksum
			}
			lied = true
			mustBe(t, fmt.Sprintf("%s, parts %t", name, parts), err, objectstore.ErrDamaged)
			proxy.Heal()
			s.nothingLeft(ctx, t, store, at)
		}
		if !lied {
			t.Errorf("%s: no checksum was changed: nothing was tested", name)
		}
	}
}
