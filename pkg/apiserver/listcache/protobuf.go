// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package listcache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
)

// itemTag begins an item: field 2 of every list, with a length.
const itemTag = 2<<3 | 2

// magic is the first bytes of every protobuf of Kubernetes.
var magic = []byte("k8s\x00")

// protobufLists encodes lists as protobuf.
type protobufLists struct {
	cache *cache
	clock clock.PassiveClock
}

// encode implements listEncoder. It lets the next encoder encode the list without items, which
// gives the kind and the metadata of the list, and appends the items.
func (p *protobufLists) encode(next runtime.Encoder, list runtime.Object, items items, w io.Writer) (bool, error) {
	var frame bytes.Buffer
	if err := next.Encode(withoutItems(list), &frame); err != nil {
		return false, err
	}
	content, found := bytes.CutPrefix(frame.Bytes(), magic)
	unknown := &runtime.Unknown{}
	if !found {
		return false, nil
	}
	if err := unknown.Unmarshal(content); err != nil {
		return false, fmt.Errorf("read the frame of a list: %w", err)
	}
	now, remember := p.clock.Now(), p.cache.isUseful(items, items.objects[0].Size())
	encoded := make([][]byte, len(items.objects))
	size := len(unknown.Raw)
	scratch := make([]byte, 0, 1+binary.MaxVarintLen64)
	for i, item := range items.objects {
		n := 0
		if encoded[i] = p.cache.find(item, now); encoded[i] != nil {
			n = len(encoded[i])
		} else {
			n = item.Size()
		}
		size += len(appendHead(scratch[:0], n)) + n
	}
	var memory []byte
	return true, writeList(w, magic, func(w io.Writer) error {
		_, err := unknown.MarshalToWriter(w, size, func(w io.Writer) (int, error) {
			written, err := w.Write(unknown.Raw)
			for i, data := range encoded {
				if err != nil {
					return written, err
				}
				if data == nil {
					if data, err = marshal(items.objects[i], memory); err != nil {
						return written, err
					}
					if remember {
						p.cache.put(items.objects[i], data, now)
					} else {
						memory = data
					}
				}
				var n int
				n, err = writeItem(w, appendHead(scratch[:0], len(data)), data)
				written += n
			}
			return written, err
		})
		return err
	})
}

// marshal encodes an object. It uses the memory if that is large enough.
func marshal(one object, memory []byte) ([]byte, error) {
	size := one.Size()
	if cap(memory) < size {
		memory = make([]byte, size)
	}
	memory = memory[:size]
	_, err := one.MarshalTo(memory)
	return memory, err
}

// appendHead appends what precedes an item of n bytes.
func appendHead(to []byte, n int) []byte {
	return binary.AppendUvarint(append(to, itemTag), uint64(n)) // #nosec G115 -- a size is not negative
}

func writeItem(w io.Writer, head, data []byte) (int, error) {
	written, err := w.Write(head)
	if err != nil {
		return written, err
	}
	n, err := w.Write(data)
	return written + n, err
}
