// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/fuzzer"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func mustInstall(scheme *runtime.Scheme) {
	utilruntime.Must(Install(scheme))
}

// Random objects come back unchanged from JSON, YAML, CBOR and protobuf, in the served
// version and in the one that the server holds in memory.
func TestRoundTrip(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, mustInstall, fuzzer.Funcs)
}

func TestRoundTripProtobuf(t *testing.T) {
	roundtrip.RoundTripProtobufTestForAPIGroup(t, mustInstall, fuzzer.Funcs)
}

func TestRoundTripToUnstructured(t *testing.T) {
	scheme := runtime.NewScheme()
	mustInstall(scheme)
	skipped := sets.New[schema.GroupVersionKind]() // Options of requests belong to no group.
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Group == v1beta2.SchemeGroupVersion.Group && strings.HasSuffix(gvk.Kind, "Options") {
			skipped.Insert(gvk)
		}
	}
	roundtrip.RoundtripToUnstructured(t, scheme, fuzzer.Funcs, skipped, nil)
}

// Objects with every field set that an earlier release stored, in testdata/v*, decode
// and encode to the same bytes for ever. testdata/HEAD is what today's code stores, and becomes that
// of a release when it is made (docs/contributing/make-a-release.md). v0.1 is from before v0.1.0.
func TestStoredObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	mustInstall(scheme)
	options := roundtrip.NewCompatibilityTestOptions(scheme)
	options.FillFuncs = map[reflect.Type]roundtrip.FillFunc{
		reflect.TypeFor[*resource.Quantity](): func(_ string, i int, object any) {
			*object.(*resource.Quantity) = *resource.NewQuantity(int64(i)<<30, resource.BinarySI)
		},
	}
	for _, kind := range []string{"EtcdCluster", "EtcdBackup", "EtcdRestore"} {
		options.Kinds = append(options.Kinds, v1beta2.SchemeGroupVersion.WithKind(kind))
	}
	options.Complete(t).Run(t)
	if len(options.TestDataDirsPreviousVersions) == 0 {
		t.Error("no objects of an earlier release")
	}
}

func TestServedVersionIsPreferred(t *testing.T) {
	scheme := runtime.NewScheme()
	mustInstall(scheme)
	got := scheme.PrioritizedVersionsForGroup(v1beta2.SchemeGroupVersion.Group)
	if len(got) != 1 || got[0] != (schema.GroupVersion{Group: "etcd.database.coreos.com", Version: "v1beta2"}) {
		t.Errorf("served versions: %v", got)
	}
}
