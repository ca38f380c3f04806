// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package listcache

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// List is a list that is not of the API, because it takes less memory. Its items may implement
// Item.
type List interface {
	runtime.Object
	metav1.ListMetaAccessor
	// Expand returns the list of the API.
	Expand() runtime.Object
	// ExpandEmpty returns the list of the API without items.
	ExpandEmpty() runtime.Object
}

// Item is an item of a List that is not an object of the API, because it takes less memory.
type Item interface {
	runtime.Object
	metav1.Object
	// Expand returns the object of the API.
	Expand() runtime.Object
	// ExpandInto overwrites what Expand of an item of the same list has returned. It allocates
	// nothing if possible.
	ExpandInto(into runtime.Object)
}

// object is an object of the API, as a list has it.
type object interface {
	runtime.Object
	metav1.Object
	Size() int
	MarshalTo(data []byte) (int, error)
}

// items are the items of a list. Either all implement object, or all implement Item.
type items struct {
	objects []object
	compact []Item
	// following is how many objects the pages after the list have, as far as the list says.
	following int64
}

func (i items) number() int { return len(i.objects) + len(i.compact) }

// at returns the metadata of an item.
func (i items) at(index int) metav1.Object {
	if i.compact != nil {
		return i.compact[index]
	}
	return i.objects[index]
}

// expander returns objects of the API, each until it returns the next one.
type expander struct {
	items
	expanded object
}

// object returns an item as the API has it; nil if that is impossible.
func (e *expander) object(index int) object {
	switch {
	case e.compact == nil:
		return e.objects[index]
	case e.expanded == nil:
		e.expanded, _ = e.compact[index].Expand().(object)
	default:
		e.compact[index].ExpandInto(e.expanded)
	}
	return e.expanded
}

// itemsOf returns the items of a list. It returns none if the object is no list, or if an item
// names its own kind and version.
func itemsOf(obj runtime.Object) items {
	if !meta.IsListType(obj) {
		return items{}
	}
	var found items
	length := meta.LenList(obj)
	err := meta.EachListItem(obj, func(one runtime.Object) error {
		if !one.GetObjectKind().GroupVersionKind().Empty() {
			return nil
		}
		switch known := one.(type) {
		case Item:
			if found.compact == nil {
				found.compact = make([]Item, 0, length)
			}
			found.compact = append(found.compact, known)
		case object:
			if found.objects == nil {
				found.objects = make([]object, 0, length)
			}
			found.objects = append(found.objects, known)
		}
		return nil
	})
	if err != nil || max(len(found.objects), len(found.compact)) != length {
		return items{}
	}
	if list, err := meta.ListAccessor(obj); err == nil && list.GetRemainingItemCount() != nil {
		found.following = *list.GetRemainingItemCount()
	}
	return found
}

// withoutItems returns a copy of the list that has no items.
func withoutItems(list runtime.Object) runtime.Object {
	if compact, ok := list.(List); ok {
		return compact.ExpandEmpty()
	}
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
