// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"

	etcdfuzzer "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/fuzzer"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/install"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestNothingIsLost: with random objects, what the watch cache holds expands to the object that it was
// made from, and so do the objects that were made earlier.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := install.Install(scheme); err != nil {
		t.Fatal(err)
	}
	random := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, etcdfuzzer.Funcs), etcdfuzzer.Source{PCG: rand.NewPCG(1, 2)}, serializer.NewCodecFactory(scheme))
	clusters := NewClusters()
	var made []Cluster
	var want []*v1beta2.EtcdCluster
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
		made = append(made, clusters.newCluster(cluster))
	}
	list := &ClusterList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, Items: made}
	whole, ok := list.Expand().(*v1beta2.EtcdClusterList)
	if !ok || whole.ListMeta != list.ListMeta || len(whole.Items) != len(want) {
		t.Fatalf("the list is %T with %d items", list.Expand(), len(whole.Items))
	}
	scratch := made[0].Expand()
	for i := range made {
		made[i].ExpandInto(scratch)
		for how, got := range map[string]runtime.Object{
			"expanded": made[i].Expand(), "overwritten": scratch, "copied": made[i].DeepCopyObject(), "in a list": &whole.Items[i],
		} {
			if diff := cmp.Diff(want[i], got); diff != "" {
				t.Fatalf("object %d differs when it is %s: %s", i, how, diff)
			}
		}
	}
}

// TestManyConditions: the conditions of a cluster that has too many for small indexes are kept, and
// an overwritten object does not overwrite them.
func TestManyConditions(t *testing.T) {
	t.Parallel()
	many, few := running("many"), running("few")
	for i := range maxConditions {
		many.Status.Conditions = append(many.Status.Conditions, v1beta2.ClusterCondition{LastUpdateTime: fmt.Sprint(i)})
	}
	want := many.DeepCopy()
	clusters := NewClusters()
	large, small := clusters.newCluster(many), clusters.newCluster(few)
	scratch := large.Expand()
	small.ExpandInto(scratch)
	if diff := cmp.Diff(want, large.Expand()); diff != "" {
		t.Errorf("the cluster with many conditions differs: %s", diff)
	}
	if got, ok := scratch.(*v1beta2.EtcdCluster); !ok || len(got.Status.Conditions) != 1 {
		t.Errorf("the cluster with one condition became %v", scratch)
	}
}

// TestKindOfAnObject: the kind of an object is known, and nothing that sets the kind changes the
// object. An encoder sets it.
func TestKindOfAnObject(t *testing.T) {
	t.Parallel()
	named := running("a")
	named.SetGroupVersionKind(v1beta2.SchemeGroupVersion.WithKind("EtcdCluster"))
	want := named.DeepCopy()
	clusters := NewClusters()
	made := clusters.newCluster(named)
	if got := made.GetObjectKind().GroupVersionKind(); got != want.GroupVersionKind() {
		t.Errorf("the kind is %v, want %v", got, want.GroupVersionKind())
	}
	made.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Kind: "changed"})
	if diff := cmp.Diff(want, made.Expand()); diff != "" {
		t.Errorf("the object was changed: %s", diff)
	}
	nameless := clusters.newCluster(running("b"))
	if got := nameless.GetObjectKind().GroupVersionKind(); !got.Empty() {
		t.Errorf("the kind is %v, want none", got)
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

func TestEqualPartsAreShared(t *testing.T) {
	t.Parallel()
	clusters := NewClusters()
	a, b := running("a"), running("b")
	made := [2]Cluster{clusters.newCluster(a), clusters.newCluster(b)}
	member, first, second := a.Status.MemberStatuses[0], made[0].content, made[1].content
	for what, shared := range map[string]bool{
		"namespace":       isOne(a.Namespace, b.Namespace),
		"version":         isOne(a.Spec.Version, b.Spec.Version),
		"condition":       first.conditions[0].kind == second.conditions[0].kind,
		"pod policy":      a.Spec.Pod == b.Spec.Pod,
		"managed fields":  a.ManagedFields[0].FieldsV1 == b.ManagedFields[0].FieldsV1,
		"pod of a member": isOne(member.Name, member.Pod) && isOne(member.Name, member.Claim),
		"times":           len(first.times) == 1 && cap(first.times) == 1,
		"label":           isOne(a.Labels["name"], a.Name),
		"capacity":        cap(a.Status.MemberStatuses) == 1 && cap(a.ManagedFields) == 1,
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

// TestStoppedWatch: a watch whose reader stops before it has read everything ends.
func TestStoppedWatch(t *testing.T) {
	t.Parallel()
	from := watch.NewFakeWithChanSize(2, false)
	w := sharingStorage{clusters: NewClusters()}.share(from)
	from.Add(running("a"))
	from.Add(running("b"))
	if event := <-w.ResultChan(); event.Type != watch.Added || event.Object.(*Cluster).GetName() != "a" {
		t.Fatalf("the first event is %v", event)
	}
	w.Stop()
	for range w.ResultChan() {
	}
}
