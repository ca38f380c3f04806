// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package listcache

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
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
func (j *jsonLists) encode(next runtime.Encoder, list runtime.Object, items []item, w io.Writer) (bool, error) {
	var frame bytes.Buffer
	if err := next.Encode(withoutItems(list), &frame); err != nil {
		return false, err
	}
	head, found := bytes.CutSuffix(frame.Bytes(), noItems)
	if !found || !bytes.HasSuffix(head, []byte(`"items":[`)) {
		return false, nil
	}
	now, remember := j.clock.Now(), j.cache.isUseful(items)
	return true, writeList(w, head[:1], func(w io.Writer) error {
		separator := head[1:]
		for _, object := range items {
			if _, err := w.Write(separator); err != nil {
				return err
			}
			separator = []byte(",")
			data := j.cache.find(object, now)
			if data == nil {
				var err error
				if data, err = json.Marshal(object); err != nil {
					return err
				}
				if remember {
					j.cache.put(object, data, now)
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

// withoutItems returns a copy of the list that has no items.
func withoutItems(list runtime.Object) runtime.Object {
	value := reflect.New(reflect.TypeOf(list).Elem())
	value.Elem().Set(reflect.ValueOf(list).Elem())
	empty, ok := value.Interface().(runtime.Object)
	if !ok {
		return list
	}
	if items, err := meta.GetItemsPtr(empty); err == nil {
		slice := reflect.ValueOf(items).Elem()
		slice.Set(reflect.MakeSlice(slice.Type(), 0, 0))
	}
	return empty
}
