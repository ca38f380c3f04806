// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	o := newOrder[string]()
	o.Push("look 1")
	o.Push("look 2")
	o.urge("change 1")
	o.Push("change 1")
	o.Touch("look 1") // it was put on the queue once more, for another look
	o.urge("look 2")
	o.Touch("look 2") // and here something has changed
	if got := []string{o.Pop(), o.Pop(), o.Pop()}; !slices.Equal(got, []string{"change 1", "look 2", "look 1"}) || o.Len() != 0 {
		t.Errorf("handed out %q, and %d are left", got, o.Len())
	}
	o.Push("change 1")
	o.urge("change 2")
	o.Push("change 2")
	if got := o.Pop(); got != "change 2" {
		t.Errorf("%q went first: it was urgent the last time", got)
	}
}

// TestOrderStarvesNoKey: changes without end leave a share to the rest.
func TestOrderStarvesNoKey(t *testing.T) {
	t.Parallel()
	o := newOrder[int]()
	o.Push(0)
	for i := 1; ; i++ {
		o.urge(i)
		o.Push(i)
		o.urge(-i)
		o.Push(-i)
		if o.Pop() == 0 {
			return
		}
		if i > 2*routineShare {
			t.Fatalf("%d changes went before", i)
		}
	}
}
