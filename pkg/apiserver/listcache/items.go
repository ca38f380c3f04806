// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package listcache

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// object is an object of the API, as a list has it.
type object interface {
	runtime.Object
	metav1.Object
	Size() int
	MarshalTo(data []byte) (int, error)
}

// items are the items of a list.
type items struct {
	objects []object
	// following is how many objects the pages after the list have, as far as the list says.
	following int64
}

// itemsOf returns the items of a list. It returns none if the object is no list, or if an item
// names its own kind and version.
func itemsOf(obj runtime.Object) items {
	if !meta.IsListType(obj) {
		return items{}
	}
	length := meta.LenList(obj)
	found := items{objects: make([]object, 0, length)}
	err := meta.EachListItem(obj, func(one runtime.Object) error {
		if known, ok := one.(object); ok && one.GetObjectKind().GroupVersionKind().Empty() {
			found.objects = append(found.objects, known)
		}
		return nil
	})
	if err != nil || len(found.objects) != length {
		return items{}
	}
	if list, err := meta.ListAccessor(obj); err == nil && list.GetRemainingItemCount() != nil {
		found.following = *list.GetRemainingItemCount()
	}
	return found
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
