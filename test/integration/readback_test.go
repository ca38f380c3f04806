// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/gitops"
)

var updateRecord = flag.Bool("update", false, "record the examples and the objects that the API server returns for them, for test/argocd")

// parseManifests returns the objects of the group in a file of manifests.
func parseManifests(t *testing.T, manifests string) (objects []*unstructured.Unstructured) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if object.GetAPIVersion() == v1beta2.SchemeGroupVersion.String() {
			objects = append(objects, object)
		}
	}
}

// requireReadBack fails unless the objects of an applied file have every value as it was written, as Terraform wants it.
// It compares the objects with the record, from which test/argocd makes Argo CD's comparison.
func requireReadBack(t *testing.T, namespace, file, manifests string) {
	t.Helper()
	var pairs []gitops.Pair
	for _, object := range parseManifests(t, manifests) {
		var live map[string]any
		name := object.GetKind() + "/" + object.GetName()
		if err := json.Unmarshal([]byte(mustKubectl(t, "get", name, "-n", namespace, "-o", "json")), &live); err != nil {
			t.Fatal(err)
		}
		pair, err := gitops.Pair{Manifest: object.Object, Live: live}.Stable(namespace)
		if err != nil {
			t.Fatal(err)
		}
		for _, difference := range gitops.Differences(pair.Manifest, pair.Live) {
			t.Errorf("%s: %s", name, difference)
		}
		pairs = append(pairs, pair)
	}
	if len(pairs) == 0 {
		return
	}
	record := filepath.Join(env.repo, "test", "argocd", "testdata", "examples", strings.TrimSuffix(filepath.Base(file), ".yaml")+".json")
	if err := gitops.Record(record, pairs, *updateRecord, "go test ./test/integration -run TestExamplesApplyTwice -update"); err != nil {
		t.Error(err)
	}
}
