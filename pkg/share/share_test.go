// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestShares: how many places namespaces take that want all of them, one namespace after the other.
func TestShares(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		places Places
		want   []int
	}{
		{Divided(1), []int{1, 0}},
		{Divided(2), []int{1, 1, 0}},
		{Divided(16), []int{8, 4, 2, 1, 1, 0}},
		{Places{Total: 3, Undivided: true}, []int{3, 0}},
	} {
		l := NewLimiter(test.places)
		var releases []func()
		for i, want := range test.want {
			taken := 0
			for {
				release, lack := l.Acquire(strconv.Itoa(i))
				if lack != Nothing {
					break
				}
				releases = append(releases, release)
				taken++
			}
			if taken != want {
				t.Errorf("of %d places namespace %d takes %d, want %d", l.Total(), i, taken, want)
			}
		}
		for _, release := range releases {
			release()
			release() // a second call gives back nothing more
		}
		if l.Taken() != 0 || len(l.taken) != 0 {
			t.Errorf("%d places are taken after the last release", l.Taken())
		}
	}
}

// TestQueue: the works of one namespace, and whatever the caller sees of it, leave places for others. One work of a cluster
// runs at a time, and the one that is due first starts first.
func TestQueue(t *testing.T) {
	t.Parallel()
	q := NewQueue(Divided(4))
	work := func(namespace, name, cluster string, due int64) Work {
		return Work{
			Key: types.NamespacedName{Namespace: namespace, Name: name}, Cluster: types.NamespacedName{Namespace: namespace, Name: cluster}, Due: time.Unix(due, 0),
		}
	}
	var seen []Work
	for i := range 100 {
		seen = append(seen, work("forger", strconv.Itoa(i), "c", 0))
	}
	for _, step := range []struct {
		w    Work
		want Lack
	}{
		{work("forger", "more", "c", 0), OfCluster},
		{work("forger", "more", "d", 0), OfNamespace},
		{work("honest", "a", "a", 3), Nothing},
		{work("honest", "b", "b", 3), OfNamespace},
		{work("third", "a", "a", 3), Nothing},
		{work("fourth", "late", "a", 2), OfAll},
		{work("fourth", "early", "a", 1), OfAll},
	} {
		if got := q.Start(step.w, seen...); got != step.want {
			t.Errorf("%s: %d lacks, want %d", step.w.Key, got, step.want)
		}
	}
	if next := q.Next(seen...); len(next) != 0 {
		t.Errorf("%v may start without a place", next)
	}
	q.End(types.NamespacedName{Namespace: "third", Name: "a"})
	early := types.NamespacedName{Namespace: "fourth", Name: "early"}
	if next := q.Next(seen...); len(next) != 1 || next[0] != early {
		t.Errorf("%v may start, want %s", next, early)
	}
	if got := q.Start(work("fourth", "late", "a", 2), seen...); got != OfAll {
		t.Errorf("the work that is due later: %d lacks", got)
	}
	if got := q.Start(work("fourth", "early", "a", 9), seen...); got != Nothing {
		t.Errorf("the work that waits since the earlier time: %d lacks", got)
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	var turns Turns
	for _, name := range []string{"a/1", "a/2", "a/3", "b/1", "c/1", "c/2"} {
		turns.Push(types.NamespacedName{Namespace: name[:1], Name: name})
	}
	for _, name := range []string{"b/1", "c/1"} {
		if key := (types.NamespacedName{Namespace: name[:1], Name: name}); !turns.Remove(key) || turns.Remove(key) {
			t.Errorf("%s was not removed once", name)
		}
	}
	for _, want := range []string{"a/1", "c/2", "a/2", "a/3"} {
		if got := turns.Pop(); got.Name != want {
			t.Errorf("%s goes, want %s", got.Name, want)
		}
	}
	if turns.Len() != 0 || len(turns.order) != 0 || len(turns.keys) != 0 {
		t.Errorf("the queue is not empty: %+v", turns)
	}
}
