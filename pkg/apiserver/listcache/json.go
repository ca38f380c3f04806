// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package listcache

import (
	"bytes"
	"encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
)

// noItems is the end of an encoded list without items.
var noItems = []byte("]}\n")

// jsonLists encodes lists as JSON.
type jsonLists struct {
	cache *cache
	clock clock.PassiveClock
}

// encode implements listEncoder. It lets the next encoder encode the list without items, and
// inserts the items.
func (j *jsonLists) encode(next runtime.Encoder, list runtime.Object, items items, w io.Writer) (bool, error) {
	var frame bytes.Buffer
	if err := next.Encode(withoutItems(list), &frame); err != nil {
		return false, err
	}
	head, found := bytes.CutSuffix(frame.Bytes(), noItems)
	if !found || !bytes.HasSuffix(head, []byte(`"items":[`)) {
		return false, nil
	}
	now, remember := j.clock.Now(), j.cache.isUseful(items, items.objects[0].Size())
	var scratch bytes.Buffer
	encoder := json.NewEncoder(&scratch)
	return true, writeList(w, head[:1], func(w io.Writer) error {
		separator := head[1:]
		for _, item := range items.objects {
			if _, err := w.Write(separator); err != nil {
				return err
			}
			separator = []byte(",")
			data := j.cache.find(item, now)
			if data == nil {
				scratch.Reset()
				if err := encoder.Encode(item); err != nil {
					return err
				}
				data = bytes.TrimSuffix(scratch.Bytes(), []byte("\n"))
				if remember {
					j.cache.put(item, bytes.Clone(data), now)
				}
			}
			if _, err := w.Write(data); err != nil {
				return err
			}
		}
		_, err := w.Write(noItems)
		return err
	})
}
