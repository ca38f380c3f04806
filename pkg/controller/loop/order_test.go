// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

func number(i int) types.NamespacedName { return key(strconv.Itoa(i)) }

func TestOrder(t *testing.T) {
	t.Parallel()
	o := newOrder()
	o.Push(key("look 1"))
	o.Push(key("look 2"))
	o.urge(key("change 1"))
	o.Push(key("change 1"))
	o.Touch(key("look 1")) // it was put on the queue once more, for another look
	o.urge(key("look 2"))
	o.Touch(key("look 2")) // and here something has changed
	if got := []types.NamespacedName{o.Pop(), o.Pop(), o.Pop()}; !slices.Equal(got, []types.NamespacedName{key("change 1"), key("look 2"), key("look 1")}) || o.Len() != 0 {
		t.Errorf("handed out %q, and %d are left", got, o.Len())
	}
	o.Push(key("change 1"))
	o.urge(key("change 2"))
	o.Push(key("change 2"))
	if got := o.Pop(); got != key("change 2") {
		t.Errorf("%q went first: it was urgent the last time", got)
	}
}

// TestOrderStarvesNoKey: changes without end leave a share to the rest.
func TestOrderStarvesNoKey(t *testing.T) {
	t.Parallel()
	o := newOrder()
	o.Push(number(0))
	for i := 1; ; i++ {
		o.urge(number(i))
		o.Push(number(i))
		o.urge(number(-i))
		o.Push(number(-i))
		if o.Pop() == number(0) {
			return
		}
		if i > 2*routineShare {
			t.Fatalf("%d changes went before", i)
		}
	}
}

// TestNamespacesTakeTurns: a thousand keys of one namespace delay the key of another by one.
func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	honest := types.NamespacedName{Namespace: "honest", Name: "a"}
	for _, urgent := range []bool{false, true} {
		o := newOrder()
		for i := range 1000 {
			if urgent {
				o.urge(number(i))
			}
			o.Push(number(i))
		}
		if urgent {
			o.urge(honest)
		}
		o.Push(honest)
		if first, second := o.Pop(), o.Pop(); first != number(0) || second != honest {
			t.Errorf("urgent %t: %s and %s go first", urgent, first, second)
		}
	}
}
