// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"bytes"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	registrytester "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

// testerNamespace is where the upstream tester works.
const testerNamespace = "test"

// errTimes is nil if comparisons ignore the times of conditions. The upstream tester compares
// the created object with an object that it made itself a moment before. It ignores only the
// time of the creation, and the times of the two objects may differ by a second.
var errTimes = apiequality.Semantic.AddFuncs(
	func(a, b metav1.Condition) bool {
		a.LastTransitionTime = b.LastTransitionTime
		return a == b
	},
	func(a, b v1beta2.ClusterCondition) bool {
		a.LastUpdateTime, a.LastTransitionTime = b.LastUpdateTime, b.LastTransitionTime
		return a == b
	},
)

// Conformance says how to make and change the objects of a kind.
type Conformance[T genericstore.Object] struct {
	NewStore func(typer *runtime.Scheme, options generic.RESTOptionsGetter) (*genericregistry.Store, error)
	// Valid returns an object without a namespace.
	Valid   func(name string) T
	Change  func(obj T)
	Corrupt func(obj T)
	// Match and Miss are field selectors that fit a valid object and do not.
	Match, Miss []fields.Set
}

// Run runs what every store of a Kubernetes API must do, on a real etcd.
func (c Conformance[T]) Run(t *testing.T) {
	t.Parallel()
	if errTimes != nil {
		t.Fatal(errTimes)
	}
	placed := func() T {
		obj := c.Valid("a")
		obj.SetNamespace(testerNamespace)
		return obj
	}
	corrupted := func() T {
		obj := c.Valid("b")
		c.Corrupt(obj)
		return obj
	}
	change := func(by func(T)) registrytester.UpdateFunc {
		return func(obj runtime.Object) runtime.Object {
			by(obj.(T))
			return obj
		}
	}
	for name, test := range map[string]func(*registrytester.Tester){
		"Create": func(tester *registrytester.Tester) { tester.TestCreate(c.Valid("a"), corrupted()) },
		"Update": func(tester *registrytester.Tester) {
			tester.TestUpdate(placed(), change(c.Change), change(c.Corrupt))
		},
		"Delete": func(tester *registrytester.Tester) { tester.TestDelete(placed()) },
		"Get":    func(tester *registrytester.Tester) { tester.TestGet(placed()) },
		"List":   func(tester *registrytester.Tester) { tester.TestList(placed()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage := New(t)
			test(registrytester.New(t, c.store(t, storage, storage.Options)))
		})
	}
	t.Run("Watch", func(t *testing.T) {
		t.Parallel()
		storage := New(t)
		tester := registrytester.New(t, c.store(t, storage, storage.Uncached))
		tester.TestWatch(placed(), nil, []labels.Set{{"no": "match"}},
			append([]fields.Set{{"metadata.name": "a"}, {"metadata.namespace": testerNamespace}}, c.Match...),
			append([]fields.Set{{"metadata.name": "b"}}, c.Miss...))
	})
	t.Run("Protobuf", func(t *testing.T) {
		t.Parallel()
		c.testProtobuf(t)
	})
}

func (c Conformance[T]) store(t *testing.T, storage *Storage, options generic.RESTOptionsGetter) *genericregistry.Store {
	t.Helper()
	store, err := c.NewStore(storage.Scheme, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	Await(t, store)
	return store
}

// testProtobuf looks at the very bytes in etcd.
func (c Conformance[T]) testProtobuf(t *testing.T) {
	storage := New(t)
	store := c.store(t, storage, storage.Options)
	resource := store.DefaultQualifiedResource.Resource
	ctx := Context(t.Context(), testerNamespace, resource, "")
	if _, err := store.Create(ctx, c.Valid("a"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	values := storage.Values(ctx, t)
	if len(values) != 1 {
		t.Fatalf("%d values are stored, want 1", len(values))
	}
	for key, value := range values {
		if want := "/" + resource + "/" + testerNamespace + "/a"; !strings.HasSuffix(key, want) {
			t.Errorf("key %q does not end in %q", key, want)
		}
		if !bytes.HasPrefix(value, []byte("k8s\x00")) {
			t.Errorf("value begins with %q, want the prefix of protobuf", value[:min(len(value), 8)])
		}
	}
}
