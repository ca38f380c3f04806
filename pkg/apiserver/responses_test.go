// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/audit"
	auditing "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/listcache"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/cluster"
)

const (
	acceptTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	acceptMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// accepts are the representations of a list that clients ask for.
var accepts = []string{
	runtime.ContentTypeJSON, runtime.ContentTypeProtobuf, runtime.ContentTypeYAML, runtime.ContentTypeJSON + ";pretty=1",
	acceptTable, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", acceptMetadata,
}

// queries are the options of a list.
var queries = []string{
	"", "resourceVersion=0", "limit=2", "includeObject=Object", "includeObject=Metadata&resourceVersion=0", "includeObject=None",
	"fieldSelector=spec.version%3D3.6.16", "labelSelector=absent",
}

// server has the handlers of the generic server for EtcdClusters.
type server struct {
	list, get, deleteCollection http.Handler
}

// newServer returns the handlers that serve EtcdClusters from a storage.
func newServer(scheme *runtime.Scheme, from rest.StandardStorage, encoders runtime.NegotiatedSerializer) server {
	table, _ := from.(rest.TableConvertor)
	scope := &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: meta.NewAccessor()},
		Serializer: encoders, ParameterCodec: runtime.NewParameterCodec(scheme),
		Convertor: scheme, Defaulter: scheme, Typer: scheme, UnsafeConvertor: runtime.UnsafeObjectConvertor(scheme),
		TableConvertor: table,
		Resource:       v1beta2.SchemeGroupVersion.WithResource("etcdclusters"), Kind: v1beta2.SchemeGroupVersion.WithKind("EtcdCluster"),
		HubGroupVersion: v1beta2.SchemeGroupVersion, MetaGroupVersion: metav1.SchemeGroupVersion,
	}
	return server{
		list:             handlers.ListResource(from, from, scope, false, time.Minute),
		get:              handlers.GetResource(from, scope),
		deleteCollection: handlers.DeleteCollection(from, true, scope, nil),
	}
}

// response returns the body of a response that an audit event contains without managed fields.
func response(ctx context.Context, t *testing.T, handler http.Handler, method, accept, query string) []byte {
	t.Helper()
	ctx = auditing.WithAuditContext(ctx)
	if err := auditing.AuditContextFrom(ctx).Init(auditing.RequestAuditConfig{Level: audit.LevelRequestResponse, OmitManagedFields: true}, nil); err != nil {
		t.Error(err)
	}
	sent := httptest.NewRequestWithContext(ctx, method, "/?"+query, nil)
	sent.Header.Set("Accept", accept)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, sent)
	if recorder.Code != http.StatusOK {
		t.Errorf("%s %s?%s: %d %s", method, accept, query, recorder.Code, recorder.Body)
	}
	return recorder.Body.Bytes()
}

// named returns a cluster that has managed fields and a label.
func named(name string) *v1beta2.EtcdCluster {
	made := valid(name)
	made.Labels = map[string]string{"name": name}
	made.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "etcd.database.coreos.com/v1beta2",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:version":{}}}`),
	}}
	return made
}

// TestServedListsEqualThoseOfTheGenericServer: clients get the same bytes from lists that share
// objects of the watch cache as from lists of the generic server.
func TestServedListsEqualThoseOfTheGenericServer(t *testing.T) {
	t.Parallel()
	storage, etcd := newStorage(t)
	for _, name := range []string{"a", "b", "c"} {
		create(t, storage, named(name))
	}
	codecs := serializer.NewCodecFactory(etcd.Scheme)
	served := newServer(etcd.Scheme, storage.EtcdCluster, listcache.NewSerializer(codecs, v1beta2.SchemeGroupVersion, clock.RealClock{}))
	generic := newServer(etcd.Scheme, storage.EtcdCluster.Store, codecs)
	for _, accept := range accepts {
		for _, query := range queries {
			expectSame(t, generic.list, served.list, http.MethodGet, accept, query)
		}
	}
}

// expectSame checks that two handlers respond with the same bytes. Other tests write to the
// same etcd, which changes the version of a list. Such responses are not compared.
func expectSame(t *testing.T, generic, served http.Handler, method, accept, query string) {
	t.Helper()
	const attempts = 1000
	for range attempts {
		want := response(requestContext(t), t, generic, method, accept, query)
		got := response(requestContext(t), t, served, method, accept, query)
		if !bytes.Equal(want, response(requestContext(t), t, generic, method, accept, query)) {
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s?%s:\n%s\nwant\n%s", accept, query, got, want)
		}
		return
	}
	t.Errorf("%s?%s: the responses of the generic server always differ", accept, query)
}

// TestRowsOfTables: a row has what the client asked for: the whole object, its metadata with managed
// fields, or nothing.
func TestRowsOfTables(t *testing.T) {
	t.Parallel()
	storage, etcd := newStorage(t)
	for _, name := range []string{"a", "b"} {
		create(t, storage, named(name))
	}
	served := newServer(etcd.Scheme, storage.EtcdCluster, listcache.NewSerializer(serializer.NewCodecFactory(etcd.Scheme), v1beta2.SchemeGroupVersion, clock.RealClock{}))
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(response(requestContext(t), t, served.list, http.MethodGet, runtime.ContentTypeJSON, ""), &list); err != nil {
		t.Fatal(err)
	}
	for include, want := range map[string]func(item map[string]any) map[string]any{
		"":         func(item map[string]any) map[string]any { return partial(item) },
		"Metadata": func(item map[string]any) map[string]any { return partial(item) },
		"Object":   func(item map[string]any) map[string]any { return item },
		"None":     func(map[string]any) map[string]any { return nil },
	} {
		var table struct {
			Rows []struct{ Object map[string]any }
		}
		if err := json.Unmarshal(response(requestContext(t), t, served.list, http.MethodGet, acceptTable, url.Values{"includeObject": {include}}.Encode()), &table); err != nil {
			t.Fatal(err)
		}
		if len(table.Rows) != len(list.Items) || len(table.Rows) == 0 {
			t.Fatalf("%q: %d rows of %d objects", include, len(table.Rows), len(list.Items))
		}
		for i, row := range table.Rows {
			list.Items[i]["apiVersion"], list.Items[i]["kind"] = v1beta2.SchemeGroupVersion.String(), "EtcdCluster"
			if want := want(list.Items[i]); !reflect.DeepEqual(row.Object, want) {
				t.Errorf("%q: row %d has\n%v\nwant\n%v", include, i, row.Object, want)
			}
			metadata, _ := row.Object["metadata"].(map[string]any)
			if entries, _ := metadata["managedFields"].([]any); include != "None" && len(entries) != 1 {
				t.Errorf("%q: the managed fields of row %d are %v", include, i, metadata["managedFields"])
			}
		}
	}
}

// partial returns an object that contains only the metadata of the given object.
func partial(of map[string]any) map[string]any {
	return map[string]any{"apiVersion": metav1.SchemeGroupVersion.String(), "kind": "PartialObjectMetadata", "metadata": of["metadata"]}
}

// contentOf encodes each object of the watch cache.
func contentOf(t *testing.T, list runtime.Object) []string {
	t.Helper()
	var all []string
	err := meta.EachListItem(list, func(item runtime.Object) error {
		encoded, err := json.Marshal(item)
		all = append(all, string(encoded))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReadsDoNotChangeTheWatchCache reads the same objects in every representation at the same time,
// while others are written. The race detector reports a read that writes to a shared object.
func TestReadsDoNotChangeTheWatchCache(t *testing.T) {
	t.Parallel()
	storage, etcd := newStorage(t)
	newest := ""
	for _, name := range []string{"a", "b", "c"} {
		newest = create(t, storage, named(name)).ResourceVersion
	}
	// A list that is not older than that waits for the watch cache, whose objects it returns.
	cached, err := storage.EtcdCluster.List(requestContext(t), &metainternalversion.ListOptions{ResourceVersion: newest, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	before := contentOf(t, cached)
	served := newServer(etcd.Scheme, storage.EtcdCluster, listcache.NewSerializer(serializer.NewCodecFactory(etcd.Scheme), v1beta2.SchemeGroupVersion, clock.RealClock{}))
	var group sync.WaitGroup
	for _, accept := range accepts {
		group.Go(func() {
			for _, query := range append(queries, queries...) {
				response(requestContext(t), t, served.list, http.MethodGet, accept, query)
			}
		})
	}
	group.Go(func() {
		for range 20 {
			readOne(t, served, "a")
		}
	})
	group.Go(func() { watchAll(t, storage, len(before)) })
	group.Go(func() {
		for range 10 {
			changeAndFail(t, storage, "a")
			writeAndDelete(t, storage, "written")
		}
	})
	group.Wait()
	if after := contentOf(t, cached); !reflect.DeepEqual(before, after) {
		t.Errorf("objects of the watch cache were\n%s\nand are\n%s", before, after)
	}
	again, err := storage.EtcdCluster.List(requestContext(t), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after := contentOf(t, again); !reflect.DeepEqual(before, after) {
		t.Errorf("stored objects were\n%s\nand are\n%s", before, after)
	}
}

// readOne gets an object of the watch cache in every representation of an object.
func readOne(t *testing.T, from server, name string) {
	t.Helper()
	ctx := requestContext(t)
	info, ok := request.RequestInfoFrom(ctx)
	if !ok {
		t.Error("no request")
		return
	}
	info.Name = name
	for _, accept := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf, acceptTable, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"} {
		response(ctx, t, from.get, http.MethodGet, accept, "resourceVersion=0")
	}
}

// watchAll reads the first events of a watch, and changes the objects as their owner may.
func watchAll(t *testing.T, storage cluster.Storage, number int) {
	t.Helper()
	events, err := storage.EtcdCluster.Watch(requestContext(t), &metainternalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Error(err)
		return
	}
	defer events.Stop()
	for range number {
		event := <-events.ResultChan()
		if owned, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = owned.GetObject()
		}
		read, ok := event.Object.(*v1beta2.EtcdCluster)
		if !ok {
			t.Errorf("a watch reads %T", event.Object)
			return
		}
		read.Labels["name"], read.Spec.Version, read.ManagedFields[0].Manager = "changed", "changed", "changed"
	}
}

// writeAndDelete creates an object and deletes it.
func writeAndDelete(t *testing.T, storage cluster.Storage, name string) {
	t.Helper()
	if _, err := storage.EtcdCluster.Create(requestContext(t), named(name), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if _, _, err := storage.EtcdCluster.Delete(requestContext(t), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// errUnwanted ends an update.
var errUnwanted = errors.New("the update is unwanted")

// changeAndFail changes the object that an update gets from the watch cache, and does not store it.
func changeAndFail(t *testing.T, storage cluster.Storage, name string) {
	t.Helper()
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, current runtime.Object) (runtime.Object, error) {
		owned, ok := current.(*v1beta2.EtcdCluster)
		if !ok {
			t.Errorf("an update gets %T", current)
			return nil, errUnwanted
		}
		owned.Labels["name"], *owned.Spec.Replicas, owned.ManagedFields[0].Manager = "changed", 5, "changed"
		owned.Status.Conditions[0].Message = "changed"
		return nil, errUnwanted
	})
	_, _, err := storage.EtcdCluster.Update(requestContext(t), name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if !errors.Is(err, errUnwanted) {
		t.Errorf("got %v, want %v", err, errUnwanted)
	}
}

// TestDeleteCollection: it deletes all objects of a list that shares them, and responds with what
// the generic server responds.
func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	storage, etcd := newStorage(t)
	for _, name := range []string{"a", "b", "c"} {
		create(t, storage, named(name))
	}
	codecs := serializer.NewCodecFactory(etcd.Scheme)
	served := newServer(etcd.Scheme, storage.EtcdCluster, listcache.NewSerializer(codecs, v1beta2.SchemeGroupVersion, clock.RealClock{}))
	generic := newServer(etcd.Scheme, storage.EtcdCluster.Store, codecs)
	expectSame(t, generic.deleteCollection, served.deleteCollection, http.MethodDelete, runtime.ContentTypeJSON, "dryRun=All")
	response(requestContext(t), t, served.deleteCollection, http.MethodDelete, runtime.ContentTypeJSON, "")
	left, err := storage.EtcdCluster.Store.List(requestContext(t), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if meta.LenList(left) != 0 {
		t.Errorf("%d objects are left", meta.LenList(left))
	}
}
