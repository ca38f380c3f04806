// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	testclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// memory is a storage of EtcdClusters that counts what it writes.
type memory struct {
	storage.Interface
	stored   map[string]*v1beta2.EtcdCluster
	revision uint64
	// conflicts is how many attempts of the next update meet another writer.
	conflicts int
}

func (m *memory) put(key string, obj runtime.Object, out *v1beta2.EtcdCluster) {
	m.revision++
	cluster := obj.(*v1beta2.EtcdCluster).DeepCopy()
	cluster.ResourceVersion = strconv.FormatUint(m.revision, 10)
	m.stored[key] = cluster
	cluster.DeepCopyInto(out)
}

func (m *memory) Create(_ context.Context, key string, obj, out runtime.Object, _ uint64) error {
	if m.stored[key] != nil {
		return storage.NewKeyExistsError(key, 0)
	}
	m.put(key, obj, out.(*v1beta2.EtcdCluster))
	return nil
}

func (m *memory) GuaranteedUpdate(
	_ context.Context, key string, out runtime.Object, _ bool, _ *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object,
) error {
	for ; ; m.conflicts-- {
		before := m.stored[key]
		state := storage.ResponseMeta{}
		state.ResourceVersion, _ = strconv.ParseUint(before.ResourceVersion, 10, 64)
		obj, _, err := update(before.DeepCopy(), state)
		switch {
		case err != nil:
			return err
		case m.conflicts > 0:
		case obj.(*v1beta2.EtcdCluster).Spec.Version == before.Spec.Version && obj.(*v1beta2.EtcdCluster).DeletionTimestamp == nil:
			before.DeepCopyInto(out.(*v1beta2.EtcdCluster))
			return nil
		default:
			m.put(key, obj, out.(*v1beta2.EtcdCluster))
			return nil
		}
	}
}

func (m *memory) GetList(_ context.Context, prefix string, _ storage.ListOptions, list runtime.Object) error {
	for key, cluster := range m.stored {
		if strings.HasPrefix(key, prefix) {
			list.(*v1beta2.EtcdClusterList).Items = append(list.(*v1beta2.EtcdClusterList).Items, *cluster)
		}
	}
	return nil
}

// as is the context of a request.
func as(ctx context.Context, namespace, verb, subresource string, groups ...string) context.Context {
	ctx = request.WithUser(request.WithNamespace(ctx, namespace), &user.DefaultInfo{Name: "u", Groups: groups})
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: "etcd.database.coreos.com", Resource: "etcdclusters", Verb: verb, Subresource: subresource, Namespace: namespace,
	})
}

var clusters = schema.GroupResource{Group: "etcd.database.coreos.com", Resource: "etcdclusters"}

// budgeted returns a storage in which each namespace has a budget of 1 MiB and 20 objects, and what is behind it.
func budgeted(t *testing.T) (storage.Interface, *memory, *testclock.FakeClock) {
	t.Helper()
	inner, clock := &memory{stored: map[string]*v1beta2.EtcdCluster{}}, testclock.NewFakeClock(time.Unix(1000, 0))
	budget := Budget{Bytes: 1 << 20, Objects: 20, Clock: clock, MayExceed: func(ctx context.Context, resource schema.GroupResource, verb string) bool {
		by, _ := request.UserFrom(ctx)
		return resource == clusters && slices.Contains(by.GetGroups(), "may-"+verb)
	}}
	options, err := LimitWrites(getter{inner}, budget).GetRESTOptions(clusters, nil)
	if err != nil {
		t.Fatal(err)
	}
	limited, _, err := options.Decorator(nil, "", nil, nil, func() runtime.Object { return &v1beta2.EtcdClusterList{} }, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return limited, inner, clock
}

func large(version string) *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"large": strings.Repeat("x", 250<<10)}},
		Spec:       v1beta2.ClusterSpec{Version: version},
	}
}

func create(ctx context.Context, s storage.Interface, key string) error {
	return s.Create(ctx, key, large("0"), &v1beta2.EtcdCluster{}, 0)
}

func update(ctx context.Context, s storage.Interface, key string, change func(*v1beta2.EtcdCluster)) error {
	return s.GuaranteedUpdate(ctx, key, &v1beta2.EtcdCluster{}, false, nil, func(input runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		change(input.(*v1beta2.EtcdCluster))
		return input, nil, nil
	}, nil)
}

func anyVersion(inner *memory) func(*v1beta2.EtcdCluster) {
	return func(c *v1beta2.EtcdCluster) { c.Spec.Version = strconv.FormatUint(inner.revision, 10) }
}

// TestWritesOfANamespace: a namespace that has used its budget waits, as long as the response says, and no other
// namespace does. Statuses, deletions and users that may exceed the limits never wait.
func TestWritesOfANamespace(t *testing.T) {
	t.Parallel()
	s, inner, clock := budgeted(t)
	tenant := as(t.Context(), "a", "update", "")
	for _, ctx := range []context.Context{tenant, as(t.Context(), "b", "create", "")} {
		if err := create(ctx, s, "/etcdclusters/"+request.NamespaceValue(ctx)+"/x"); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	written := 1
	for ; err == nil && written < 100; written++ {
		err = update(tenant, s, "/etcdclusters/a/x", anyVersion(inner))
	}
	seconds, again := apierrors.SuggestsClientDelay(err)
	if !apierrors.IsTooManyRequests(err) || !again || written-1 != 4 || !strings.Contains(err.Error(), BudgetFlag) {
		t.Fatalf("after %d writes of 250 KiB: %v; want a status 429 after 4 that names %s", written-1, err, BudgetFlag)
	}
	for name, ctx := range map[string]context.Context{
		"another namespace":   as(t.Context(), "b", "update", ""),
		"a status":            as(t.Context(), "a", "update", "status"),
		"may exceed it":       as(t.Context(), "a", "update", "", "may-exceed"),
		"the controller":      as(t.Context(), "a", "update", "", "may-exceed-rate"),
		"a graceful deletion": as(t.Context(), "a", "delete", ""),
	} {
		if err := update(ctx, s, "/etcdclusters/"+request.NamespaceValue(ctx)+"/x", anyVersion(inner)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	clock.Step(time.Duration(seconds) * time.Second)
	if err := update(tenant, s, "/etcdclusters/a/x", anyVersion(inner)); err != nil {
		t.Errorf("after the %d s of the response: %v", seconds, err)
	}
}

// TestWhatIsNotWrittenIsNotCounted: updates that change nothing, attempts that meet another writer, names that exist.
func TestWhatIsNotWrittenIsNotCounted(t *testing.T) {
	t.Parallel()
	s, inner, _ := budgeted(t)
	tenant := as(t.Context(), "a", "update", "")
	if err := create(tenant, s, "/etcdclusters/a/x"); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := update(tenant, s, "/etcdclusters/a/x", func(*v1beta2.EtcdCluster) {}); err != nil {
			t.Fatal("no change:", err)
		}
		if err := create(tenant, s, "/etcdclusters/a/x"); !storage.IsExist(err) {
			t.Fatal("name that exists:", err)
		}
	}
	inner.conflicts = 10
	if err := update(tenant, s, "/etcdclusters/a/x", anyVersion(inner)); err != nil {
		t.Error("conflicts:", err)
	}
}

// TestFinalizersLeaveAFullNamespace: the finalizers of an object can be removed without a budget, because adding them has
// paid for it. So they do not make writes free either.
func TestFinalizersLeaveAFullNamespace(t *testing.T) {
	t.Parallel()
	s, inner, clock := budgeted(t)
	tenant := as(t.Context(), "a", "update", "")
	const key = "/etcdclusters/a/x"
	finalizers := func(n int) func(*v1beta2.EtcdCluster) {
		return func(c *v1beta2.EtcdCluster) {
			anyVersion(inner)(c)
			c.Finalizers = slices.Repeat([]string{"a/a"}, n)
		}
	}
	if err := create(tenant, s, key); err != nil {
		t.Fatal(err)
	}
	if err := update(tenant, s, key, finalizers(3)); !apierrors.IsTooManyRequests(err) {
		t.Errorf("three finalizers cost four writes, and there is budget for three: %v", err)
	}
	clock.Step(refillTime)
	if err := update(tenant, s, key, finalizers(3)); err != nil {
		t.Fatal(err)
	}
	if err := update(tenant, s, key, finalizers(100)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "fewer finalizers") {
		t.Errorf("a hundred finalizers of a large object: %v", err)
	}
	inner.stored[key].DeletionTimestamp = &metav1.Time{}
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = update(tenant, s, key, anyVersion(inner))
	}
	if !apierrors.IsTooManyRequests(err) {
		t.Errorf("the namespace has a budget still: %v", err)
	}
	if err = update(as(t.Context(), "a", "delete", ""), s, key, anyVersion(inner)); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a second deletion, with another policy: %v", err)
	}
	for _, n := range []int{2, 1, 0} {
		if err = update(tenant, s, key, finalizers(n)); err != nil {
			t.Errorf("%d finalizers are left: %v", n, err)
		}
	}
	if err = update(tenant, s, key, anyVersion(inner)); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a write that removes nothing: %v", err)
	}
}

// TestObjectsThatAreDeletedGrowLittle: a namespace does not fill the storage with objects that a finalizer keeps, and what
// removes a finalizer is never rejected for the few bytes of its own name.
func TestObjectsThatAreDeletedGrowLittle(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		was, now measured
		may      bool
	}{
		"a small one":                         {measured{2 << 10, 1}, measured{10 << 10, 1}, true},
		"a large one":                         {measured{2 << 10, 1}, measured{250 << 10, 1}, false},
		"a large one loses a finalizer":       {measured{250 << 10, 2}, measured{251 << 10, 1}, true},
		"a finalizer is the pretext":          {measured{2 << 10, 2}, measured{250 << 10, 1}, false},
		"a large one, again a little at most": {measured{250 << 10, 1}, measured{251 << 10, 1}, false},
	} {
		if got := mayGrow(&test.was, &test.now); got != test.may {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestObjectsOfANamespace: small objects do not fill the memory of the programs that look after them. Failed creates of names
// that exist are no objects.
func TestObjectsOfANamespace(t *testing.T) {
	t.Parallel()
	s, inner, clock := budgeted(t)
	tenant := as(t.Context(), "a", "create", "")
	put := func(ctx context.Context, name int) error {
		return s.Create(ctx, "/etcdclusters/"+request.NamespaceValue(ctx)+"/"+strconv.Itoa(name), &v1beta2.EtcdCluster{}, &v1beta2.EtcdCluster{}, 0)
	}
	for i := range 20 {
		if err := put(tenant, i); err != nil {
			t.Fatal(err)
		}
		if err := put(tenant, 0); !storage.IsExist(err) && i < 19 {
			t.Errorf("a name that exists, with %d objects: %v", i+1, err)
		}
	}
	err := put(tenant, 20)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), ObjectsFlag) || !strings.Contains(err.Error(), "right exceed etcdclusters") {
		t.Errorf("object 21: %v; want a status 403 that names %s and the right", err, ObjectsFlag)
	}
	if err := update(tenant, s, "/etcdclusters/a/0", func(c *v1beta2.EtcdCluster) { c.Spec.Version = "a longer one" }); err != nil {
		t.Error("an update that grows:", err)
	}
	if err := put(as(t.Context(), "a", "create", "", "may-exceed-rate"), 20); !apierrors.IsForbidden(err) {
		t.Errorf("the controller creates what a tenant asks for: %v; want a status 403", err)
	}
	for name, ctx := range map[string]context.Context{
		"another namespace": as(t.Context(), "b", "create", ""),
		"may exceed it":     as(t.Context(), "a", "create", "", "may-exceed"),
	} {
		if err := put(ctx, 20); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	delete(inner.stored, "/etcdclusters/a/3")
	delete(inner.stored, "/etcdclusters/a/4")
	clock.Step(fullPeriod)
	if err := put(tenant, 21); err != nil {
		t.Error("after a deletion:", err)
	}
}

// TestStoredOfANamespace: objects of a namespace do not fill the storage slowly either. Deleting some makes room.
func TestStoredOfANamespace(t *testing.T) {
	t.Parallel()
	s, inner, clock := budgeted(t)
	tenant := as(t.Context(), "a", "create", "")
	var err error
	created := 0
	for ; err == nil && created < 100; created++ {
		err = create(tenant, s, "/etcdclusters/a/"+strconv.Itoa(created))
		clock.Step(refillTime)
	}
	if !apierrors.IsForbidden(err) || created-1 != 16 || !strings.Contains(err.Error(), BudgetFlag) {
		t.Fatalf("after %d objects of 250 KiB: %v; want that the 17th is forbidden, by %s", created-1, err, BudgetFlag)
	}
	if err := update(tenant, s, "/etcdclusters/a/0", anyVersion(inner)); err != nil {
		t.Error("update that does not grow:", err)
	}
	if err := update(as(t.Context(), "a", "update", "", "may-exceed-rate"), s, "/etcdclusters/a/0", func(c *v1beta2.EtcdCluster) {
		c.Annotations["of the controller"] = strings.Repeat("x", 250<<10)
	}); err != nil {
		t.Error("the controller changes an object:", err)
	}
	if err := create(as(t.Context(), "b", "create", ""), s, "/etcdclusters/b/0"); err != nil {
		t.Error("another namespace:", err)
	}
	delete(inner.stored, "/etcdclusters/a/3")
	clock.Step(fullPeriod)
	if err := create(tenant, s, "/etcdclusters/a/more"); err != nil {
		t.Error("after a deletion:", err)
	}
}
