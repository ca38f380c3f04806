// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/binary"
	"hash/fnv"
	"iter"
)

// The layout of a bbolt database. All numbers are in the byte order of the machine that
// wrote it; one that is not little-endian is not read.
//
//	page     id 8, flags 2, count 2, overflow 4, then elements, then keys and values
//	leaf     flags 4, position 4 (from the element), key size 4, value size 4
//	branch   position 4, key size 4, page 8
//	bucket   a value: page of its root 8, sequence 8; if the root is 0, a page follows
//	meta     magic 4, version 4, page size 4, flags 4, root 8, sequence 8, freelist 8,
//	         pages 8, transaction 8, checksum 8
const (
	pageHeader   = 16
	elementSize  = 16
	bucketHeader = 16
	metaSize     = 64
	metaMagic    = 0xED0CDAED

	branchPage    = 0x01
	leafPage      = 0x02
	bucketElement = 0x01

	minPageSize = 512
	maxPageSize = 64 << 10
	// maxLeaves bounds the memory for pages that may matter. Free pages still hold what
	// they were, but a database has only a handful of free pages like these.
	maxLeaves = 1 << 16
)

var order = binary.LittleEndian

// pageReader finds the versions in a database that streams past, page by page. A page is in
// use if a page that refers to it is, and that page may come later. So the reader remembers
// candidate pages, and counts those that the root leads to. A stream that is no database
// has no versions.
type pageReader struct {
	size   int // of a page, or of what is needed to know that
	begun  bool
	lost   bool   // this is no database
	root   uint64 // page at which the buckets begin
	page   []byte // the page that comes now
	number uint64

	children []uint64 // of the root, if there are too many buckets for one page
	leaves   map[uint64]leaf
}

// leaf is what matters of a leaf page.
type leaf struct {
	// versions of the buckets that lie within the page, or of the bucket whose page it is.
	versions versions
	// meta and cluster are the pages of these buckets, if they do not lie within this page.
	meta, cluster uint64
}

func newPageReader() *pageReader {
	return &pageReader{size: pageHeader + metaSize, leaves: map[uint64]leaf{}}
}

// add takes the next bytes of the database.
func (r *pageReader) add(data []byte) {
	for len(data) > 0 && !r.lost {
		n := min(r.size-len(r.page), len(data))
		r.page = append(r.page, data[:n]...)
		data = data[n:]
		switch {
		case len(r.page) < r.size:
		case !r.begun:
			r.begun, r.lost = true, !r.begin()
		default:
			r.take()
			r.page, r.number = r.page[:0], r.number+1
		}
	}
}

// begin reads the first meta page. A snapshot has two that lead to the same root.
func (r *pageReader) begin() bool {
	meta := r.page[pageHeader:]
	if order.Uint32(meta) != metaMagic {
		return false
	}
	sum := fnv.New64a()
	sum.Write(meta[:metaSize-8])
	r.size = int(order.Uint32(meta[8:]))
	r.root = order.Uint64(meta[16:])
	return sum.Sum64() == order.Uint64(meta[metaSize-8:]) && r.size >= minPageSize && r.size <= maxPageSize
}

// take keeps what matters of a page.
func (r *pageReader) take() {
	if order.Uint64(r.page) != r.number {
		return // it goes on with what the page before began with, or was never used
	}
	switch flags := order.Uint16(r.page[8:]); {
	case flags == leafPage && (len(r.leaves) < maxLeaves || r.number == r.root):
		if l := readLeaf(r.page); l != (leaf{}) {
			r.leaves[r.number] = l
		}
	case flags == branchPage && r.number == r.root:
		for i := range int(order.Uint16(r.page[10:])) {
			if at := pageHeader + i*elementSize; at+elementSize <= len(r.page) {
				r.children = append(r.children, order.Uint64(r.page[at+8:]))
			}
		}
	}
}

// readLeaf reads a leaf page.
func readLeaf(page []byte) leaf {
	var l leaf
	for e := range elements(page) {
		key := string(e.key)
		switch {
		case !e.bucket:
			// Only a page that refers to this page shows its bucket.
			l.versions.add(metaBucket, key, e.value)
			l.versions.add(clusterBucket, key, e.value)
		case key != metaBucket && key != clusterBucket, len(e.value) < bucketHeader:
		case order.Uint64(e.value) == 0:
			for inner := range elements(e.value[bucketHeader:]) {
				l.versions.add(key, string(inner.key), inner.value)
			}
		case key == metaBucket:
			l.meta = order.Uint64(e.value)
		default:
			l.cluster = order.Uint64(e.value)
		}
	}
	return l
}

// element is an entry of a leaf page.
type element struct {
	bucket     bool
	key, value []byte
}

// elements yields the short entries of a leaf page. Those that do not fit into it, as
// large values do not, are none that matter.
func elements(page []byte) iter.Seq[element] {
	return func(yield func(element) bool) {
		if len(page) < pageHeader {
			return
		}
		for i := range int(order.Uint16(page[10:])) {
			at := pageHeader + i*elementSize
			if at+elementSize > len(page) {
				return
			}
			header := page[at : at+elementSize]
			key := at + int(order.Uint32(header[4:]))
			value := key + int(order.Uint32(header[8:]))
			end := value + int(order.Uint32(header[12:]))
			if end > len(page) {
				continue
			}
			if !yield(element{order.Uint32(header)&bucketElement != 0, page[key:value], page[value:end]}) {
				return
			}
		}
	}
}

// versions returns what etcd has noted, once the whole database has passed.
func (r *pageReader) versions() versions {
	var found versions
	if r.lost {
		return found
	}
	for _, at := range append([]uint64{r.root}, r.children...) {
		l := r.leaves[at]
		found.merge(l.versions)
		if l.meta != 0 {
			meta := r.leaves[l.meta].versions
			found.merge(versions{storage: meta.storage, term: meta.term})
		}
		if l.cluster != 0 {
			found.merge(versions{cluster: r.leaves[l.cluster].versions.cluster})
		}
	}
	return found
}
