// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"

	etcdfuzzer "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/fuzzer"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/install"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestNothingIsLost: random objects are equal to what they were before they shared parts, and so are
// the objects that shared them earlier.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := install.Install(scheme); err != nil {
		t.Fatal(err)
	}
	random := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, etcdfuzzer.Funcs), etcdfuzzer.Source{PCG: rand.NewPCG(1, 2)}, serializer.NewCodecFactory(scheme))
	clusters := NewClusters()
	var got, want []*v1beta2.EtcdCluster
	for i := range 300 {
		cluster := &v1beta2.EtcdCluster{}
		switch i % 4 {
		case 0, 1:
			random.Fill(cluster)
		case 2:
			cluster = running(fmt.Sprintf("c-%d", i))
		default:
			cluster.Name = "empty"
		}
		want = append(want, cluster.DeepCopy())
		clusters.share(cluster)
		got = append(got, cluster)
	}
	for i := range got {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Fatalf("object %d differs: %s", i, diff)
		}
	}
}

// running is a cluster with what a decoder leaves in it: strings of its own, and slices with
// capacity for more.
func running(name string) *v1beta2.EtcdCluster {
	text := func(s string) string { return string([]byte(s)) }
	member := name + "-member"
	c := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: text("team"), Labels: map[string]string{text("name"): text(name)},
			ManagedFields: make([]metav1.ManagedFieldsEntry, 0, 4),
		},
		Spec: v1beta2.ClusterSpec{Version: text("3.6.16"), Pod: &v1beta2.PodPolicy{NodeSelector: map[string]string{"a": "b", "c": "d"}}},
	}
	c.ManagedFields = append(c.ManagedFields, metav1.ManagedFieldsEntry{Manager: text("m"), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)})
	c.Status.MemberStatuses = append(make([]v1beta2.MemberStatus, 0, 4),
		v1beta2.MemberStatus{Name: text(member), Pod: text(member), Claim: text(member), Version: text("3.6.16")})
	c.Status.Conditions = append(make([]v1beta2.ClusterCondition, 0, 4), v1beta2.ClusterCondition{
		Type: v1beta2.ClusterConditionType(text("Ready")), Status: corev1.ConditionTrue,
		LastUpdateTime: text("2026-11-25T00:00:00Z"), LastTransitionTime: text("2026-11-25T00:00:00Z"),
	})
	return c
}

func isOne(a, b string) bool { return a == b && unsafe.StringData(a) == unsafe.StringData(b) }

// expectShared fails for each part that two objects made by running do not share.
func expectShared(t *testing.T, a, b *v1beta2.EtcdCluster) {
	t.Helper()
	member, first, second := a.Status.MemberStatuses[0], a.Status.Conditions[0], b.Status.Conditions[0]
	for what, shared := range map[string]bool{
		"namespace":       isOne(a.Namespace, b.Namespace),
		"version":         isOne(a.Spec.Version, b.Spec.Version),
		"condition":       isOne(string(first.Type), string(second.Type)),
		"pod policy":      a.Spec.Pod == b.Spec.Pod,
		"managed fields":  a.ManagedFields[0].FieldsV1 == b.ManagedFields[0].FieldsV1,
		"pod of a member": isOne(member.Name, member.Pod) && isOne(member.Name, member.Claim),
		"times":           isOne(first.LastUpdateTime, first.LastTransitionTime),
		"label":           isOne(a.Labels["name"], a.Name),
		"capacity":        cap(a.Status.MemberStatuses) == 1 && cap(a.ManagedFields) == 1 && cap(a.Status.Conditions) == 1,
	} {
		if !shared {
			t.Errorf("%s: not shared", what)
		}
	}
	// The cache of encodings recognizes an object by the address of its managed fields.
	if &a.ManagedFields[0] == &b.ManagedFields[0] {
		t.Error("two objects have the same slice of managed fields")
	}
}

func TestEqualPartsAreShared(t *testing.T) {
	t.Parallel()
	clusters := NewClusters()
	a, b := running("a"), running("b")
	clusters.share(a)
	clusters.share(b)
	expectShared(t, a, b)
}

// TestLargePartsAreNotRemembered: otherwise the versions of one object of a tenant would fill the memory.
func TestLargePartsAreNotRemembered(t *testing.T) {
	t.Parallel()
	clusters := NewClusters()
	for i := range 10 {
		cluster := running("a")
		text := fmt.Sprint(i) + strings.Repeat("x", longestPart)
		cluster.Spec.Pod.NodeSelector["a"] = text
		cluster.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(text)
		clusters.share(cluster)
	}
	if pods, fields := len(clusters.pods.recent), len(clusters.fields.recent); pods != 0 || fields != 0 {
		t.Errorf("%d pod policies and %d managed fields are remembered, want none", pods, fields)
	}
}

func TestDifferentPartsStayApart(t *testing.T) {
	t.Parallel()
	clusters := NewClusters()
	a, b := running("a"), running("b")
	b.Spec.Pod.NodeSelector["c"] = "other"
	clusters.share(a)
	clusters.share(b)
	if a.Spec.Pod == b.Spec.Pod || b.Spec.Pod.NodeSelector["c"] != "other" {
		t.Error("different pod policies are shared")
	}
}

func TestTableIsBounded(t *testing.T) {
	t.Parallel()
	table := newTable[string, int](10)
	for i := range 100 {
		table.get("always", -1)
		table.get(fmt.Sprint(i), i)
		if n := len(table.recent) + len(table.old); n > 20 {
			t.Fatalf("%d values, want at most 20", n)
		}
	}
	if got := table.get("always", 7); got != -1 {
		t.Errorf("a value that was always used is %d, want -1", got)
	}
	if got := table.get("0", 7); got != 7 {
		t.Errorf("a value that was not used for long is %d, want to have been forgotten", got)
	}
}

// timed is an event's object as the storage of the watch cache wraps it.
type timed struct{ runtime.Object }

func (timed) RecordTime() time.Time    { return time.Time{} }
func (w timed) Unwrap() runtime.Object { return w.Object }

// TestWatchedObjectsAreShared: the objects of events share parts, with the wrapping of the storage
// and without, and stay wrapped.
func TestWatchedObjectsAreShared(t *testing.T) {
	t.Parallel()
	from := watch.NewFakeWithChanSize(3, false)
	w := cacheSource{clusters: NewClusters()}.share(from)
	a, b := running("a"), running("b")
	from.Add(a)
	from.Add(timed{b})
	from.Action(watch.Bookmark, &v1beta2.EtcdRestore{})
	from.Stop()
	var got []runtime.Object
	for event := range w.ResultChan() {
		got = append(got, event.Object)
	}
	if len(got) != 3 || got[0] != runtime.Object(a) || got[1] != (timed{b}) {
		t.Fatalf("the watch has %v", got)
	}
	expectShared(t, a, b)
}

// TestStoppedWatch: a watch whose reader stops before it has read everything ends.
func TestStoppedWatch(t *testing.T) {
	t.Parallel()
	from := watch.NewFakeWithChanSize(2, false)
	w := cacheSource{clusters: NewClusters()}.share(from)
	from.Add(running("a"))
	from.Add(running("b"))
	if event := <-w.ResultChan(); event.Type != watch.Added || event.Object.(*v1beta2.EtcdCluster).Name != "a" {
		t.Fatalf("the first event is %v", event)
	}
	w.Stop()
	for range w.ResultChan() {
	}
}
