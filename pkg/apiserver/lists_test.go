// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/listcache"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
)

const ns = metav1.NamespaceDefault

func TestMain(m *testing.M) { registrytest.Main(m) }

func newStorage(t *testing.T) (cluster.Storage, *registrytest.Storage) {
	t.Helper()
	etcd := registrytest.New(t)
	storage, err := cluster.NewStorage(etcd.Scheme, etcd.Options, cluster.Dependencies{Prober: prober.New(nil, nil, clock.RealClock{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.EtcdCluster.Destroy)
	registrytest.Await(t, storage.EtcdCluster.Store)
	return storage, etcd
}

func requestContext(t *testing.T) context.Context {
	return registrytest.Context(t.Context(), ns, "etcdclusters", "")
}

// valid returns a cluster as its author writes it, with defaults.
func valid(name string) *v1beta2.EtcdCluster {
	made := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.6.16"},
	}
	v1beta2.SetObjectDefaults_EtcdCluster(made)
	return made
}

func create(t *testing.T, storage cluster.Storage, desired *v1beta2.EtcdCluster) *v1beta2.EtcdCluster {
	t.Helper()
	obj, err := storage.EtcdCluster.Create(requestContext(t), desired, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created, ok := obj.(*v1beta2.EtcdCluster)
	if !ok {
		t.Fatalf("created %T", obj)
	}
	return created
}

// TestListsAreThoseOfTheAPI: a served list encodes to the same bytes with remembered encodings and
// without, in every format, and its Table names its objects.
func TestListsAreThoseOfTheAPI(t *testing.T) {
	t.Parallel()
	storage, etcd := newStorage(t)
	for _, name := range []string{"a", "b", "c"} {
		made := create(t, storage, valid(name))
		made.Status.Conditions = append(made.Status.Conditions, v1beta2.ClusterCondition{
			Type: "QuorumLost", Status: "True", Message: "quorum of " + name, LastUpdateTime: "2026-11-25T00:00:00Z", LastTransitionTime: "2026-11-25T00:00:01Z",
		})
		update := rest.DefaultUpdatedObjectInfo(made)
		if _, _, err := storage.Status.Update(requestContext(t), name, update, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	served, err := storage.EtcdCluster.List(requestContext(t), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, ok := served.(*v1beta2.EtcdClusterList)
	if !ok || len(list.Items) != 3 || len(list.Items[0].Status.Conditions) < 2 || list.ResourceVersion == "" {
		t.Fatalf("the list is %v", served)
	}
	plain := serializer.NewCodecFactory(etcd.Scheme)
	caching := listcache.NewSerializer(plain, v1beta2.SchemeGroupVersion, clock.RealClock{})
	encode := func(s runtime.NegotiatedSerializer, encoder runtime.Serializer, obj runtime.Object) string {
		var out bytes.Buffer
		if err := s.EncoderForVersion(encoder, v1beta2.SchemeGroupVersion).Encode(obj, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, info := range plain.SupportedMediaTypes() {
		for range 2 {
			if got, want := encode(caching, info.Serializer, served), encode(plain, info.Serializer, list); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", info.MediaType, got, want)
			}
		}
	}
	table, err := storage.EtcdCluster.ConvertToTable(requestContext(t), served, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range table.Rows {
		object, err := meta.Accessor(row.Object.Object)
		if err != nil || object.GetName() != list.Items[i].Name || object.GetUID() != list.Items[i].UID {
			t.Errorf("row %d has the object %v", i, row.Object.Object)
		}
		if message := row.Cells[len(row.Cells)-1]; message != "quorum of "+list.Items[i].Name {
			t.Errorf("row %d has the message %v", i, message)
		}
	}
}

// TestWatchCacheShares: objects that the watch cache reads from events share parts.
func TestWatchCacheShares(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	newest := ""
	for _, name := range []string{"a", "b"} {
		desired := valid(name)
		desired.Spec.Pod = &v1beta2.PodPolicy{NodeSelector: map[string]string{"disk": "fast"}}
		newest = create(t, storage, desired).ResourceVersion
	}
	obj, err := storage.EtcdCluster.List(requestContext(t), &metainternalversion.ListOptions{ResourceVersion: newest, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	list, ok := obj.(*v1beta2.EtcdClusterList)
	if !ok || len(list.Items) != 2 || list.Items[0].Spec.Pod == nil || list.Items[0].Spec.Pod != list.Items[1].Spec.Pod {
		t.Errorf("two objects with equal pod policies do not share them: %v", obj)
	}
}

// TestReadsOfTheWatchCache: an object that the watch cache returns equals the stored one.
func TestReadsOfTheWatchCache(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	created := create(t, storage, valid("a"))
	for _, version := range []string{"", created.ResourceVersion} {
		got, err := storage.EtcdCluster.Get(requestContext(t), "a", &metav1.GetOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		if read, ok := got.(*v1beta2.EtcdCluster); !ok || read.UID != created.UID || len(read.Status.Conditions) != len(created.Status.Conditions) {
			t.Errorf("version %q: got %v, want %v", version, got, created)
		}
	}
	if _, err := storage.EtcdCluster.Get(requestContext(t), "absent", &metav1.GetOptions{ResourceVersion: created.ResourceVersion}); err == nil {
		t.Error("an absent object was found")
	}
}
