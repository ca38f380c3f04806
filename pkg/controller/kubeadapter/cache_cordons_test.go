// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func cordonedNode(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"not": "kept"}},
	}
}

func metadataOf(t *testing.T, objects ...runtime.Object) *fake.FakeMetadataClient {
	t.Helper()
	s := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(s); err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleMetadataClient(s, objects...)
}

// running runs Cordons until the test ends.
func running(t *testing.T, c *Cordons) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	var group sync.WaitGroup
	group.Go(func() { c.Run(ctx) })
	t.Cleanup(func() { cancel(); group.Wait() })
	return ctx
}

// TestCordons: the watch is for cordoned nodes only, and reports each change of a cordon once.
func TestCordons(t *testing.T) {
	client := metadataOf(t, cordonedNode("one"))
	c, err := NewCordons(client)
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan string, 10)
	if err := c.Notify(func(node string) { changed <- node }); err != nil {
		t.Fatal(err)
	}
	ctx := running(t, c)
	next := func(want string) {
		t.Helper()
		select {
		case got := <-changed:
			if got != want {
				t.Fatalf("told of node %q, want %q", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("not told of node %s", want)
		}
	}
	if !c.WaitForSync(ctx) {
		t.Fatal("the cordoned nodes are not known")
	}
	next("one")
	if !c.IsCordoned("one") || c.IsCordoned("two") || c.IsCordoned("") {
		t.Errorf("cordoned: one %t, two %t, none %t", c.IsCordoned("one"), c.IsCordoned("two"), c.IsCordoned(""))
	}
	if node, _, _ := c.informer.GetStore().GetByKey("one"); len(node.(*metav1.PartialObjectMetadata).Labels) > 0 {
		t.Error("more than the name is kept")
	}
	nodes := client.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	if err := nodes.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next("one")
	if c.IsCordoned("one") {
		t.Error("an uncordoned node is still cordoned")
	}
	for _, action := range client.Actions() {
		if list, ok := action.(clienttesting.ListAction); ok && list.GetListRestrictions().Fields.String() != "spec.unschedulable=true" {
			t.Errorf("listed: %v", list.GetListRestrictions().Fields)
		}
		if watch, ok := action.(clienttesting.WatchAction); ok && watch.GetWatchRestrictions().Fields.String() != "spec.unschedulable=true" {
			t.Errorf("watched: %v", watch.GetWatchRestrictions().Fields)
		}
	}
}

// TestCordonsWithoutTheRight: a controller that may not list nodes starts all the same.
func TestCordonsWithoutTheRight(t *testing.T) {
	client := metadataOf(t)
	forbid := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no Role grants it"))
	}
	client.PrependReactor("list", "nodes", forbid)
	c, err := NewCordons(client)
	if err != nil {
		t.Fatal(err)
	}
	ctx := running(t, c)
	if !c.WaitForSync(ctx) {
		t.Error("the start is blocked")
	}
	if c.IsCordoned("one") {
		t.Error("a node is cordoned")
	}
}

// TestPodsOn finds the pods of a node.
func TestPodsOn(t *testing.T) {
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, PodIndices())
	for name, node := range map[string]string{"a": "one", "b": "two", "c": ""} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n"}, Spec: corev1.PodSpec{NodeName: node}}
		if err := pods.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	for node, want := range map[string]int{"one": 1, "two": 1, "three": 0, "": 0} {
		if found, err := PodsOn(pods, node); err != nil || len(found) != want {
			t.Errorf("on node %q: %v, %v", node, found, err)
		}
	}
}
