// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Turns is a queue in which namespaces take turns: a key waits for one key of each other namespace, and for those of its own
// namespace that came before. The zero value is empty.
type Turns struct {
	keys map[string][]types.NamespacedName
	// order holds the namespaces that have keys; the first one has the turn.
	order []string
	n     int
}

// Push adds a key.
func (t *Turns) Push(key types.NamespacedName) {
	if t.keys == nil {
		t.keys = map[string][]types.NamespacedName{}
	}
	if len(t.keys[key.Namespace]) == 0 {
		t.order = append(t.order, key.Namespace)
	}
	t.keys[key.Namespace] = append(t.keys[key.Namespace], key)
	t.n++
}

// Pop takes the key whose turn it is. There must be one.
func (t *Turns) Pop() types.NamespacedName {
	namespace := t.order[0]
	t.order = t.order[1:]
	keys := t.keys[namespace]
	key := keys[0]
	if keys[0] = (types.NamespacedName{}); len(keys) == 1 { // what is behind the slice is kept until it grows
		delete(t.keys, namespace)
	} else {
		t.keys[namespace] = keys[1:]
		t.order = append(t.order, namespace)
	}
	t.n--
	return key
}

// Remove takes a key out of its turn. It is false if the key is not in the queue.
func (t *Turns) Remove(key types.NamespacedName) bool {
	keys := t.keys[key.Namespace]
	i := slices.Index(keys, key)
	if i < 0 {
		return false
	}
	if t.n--; len(keys) > 1 {
		t.keys[key.Namespace] = slices.Delete(keys, i, i+1)
		return true
	}
	delete(t.keys, key.Namespace)
	t.order = slices.DeleteFunc(t.order, func(namespace string) bool { return namespace == key.Namespace })
	return true
}

// Len is how many keys there are.
func (t *Turns) Len() int { return t.n }
