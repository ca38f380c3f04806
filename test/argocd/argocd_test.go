// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pair is what test/gitops records.
type pair struct {
	Manifest, Live map[string]any
	Differences    []string
}

// TestRecordedPairs: for Argo CD an object is as its manifest, but for the values of the table in docs/how-to/gitops.md.
func TestRecordedPairs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.json"))
	if err != nil || len(files) < 15 {
		t.Fatalf("only %v: %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.ToSlash(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var pairs []pair
			if err := json.Unmarshal(data, &pairs); err != nil || len(pairs) == 0 {
				t.Fatalf("%d pairs: %v", len(pairs), err)
			}
			for _, pair := range pairs {
				compare(t, pair)
			}
		})
	}
}

// compare compares a pair in both ways of Argo CD on the client. The three-way comparison has the manifest that was applied
// before, which Argo CD leaves in an annotation. After a server-side apply there is none.
func compare(t *testing.T, recorded pair) {
	t.Helper()
	config := &unstructured.Unstructured{Object: recorded.Manifest}
	applied, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	for way, annotation := range map[string]string{"three-way": string(applied), "two-way": ""} {
		live := (&unstructured.Unstructured{Object: recorded.Live}).DeepCopy()
		annotations := maps.Clone(live.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if annotation != "" {
			annotations[corev1.LastAppliedConfigAnnotation] = annotation
		}
		live.SetAnnotations(annotations)
		result, err := diff.Diff(config, live)
		if err != nil {
			t.Fatal(err)
		}
		var predicted, normalized map[string]any
		if err := json.Unmarshal(result.PredictedLive, &predicted); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(result.NormalizedLive, &normalized); err != nil {
			t.Fatal(err)
		}
		got := differences("", predicted, normalized)
		if !slices.Equal(got, recorded.Differences) || result.Modified != (len(got) > 0) {
			t.Errorf("%s %s, %s: OutOfSync %v because of\n%v, want\n%v", config.GetKind(), config.GetName(), way, result.Modified, got, recorded.Differences)
		}
	}
}

// differences returns the paths of values that the live object does not have, or has otherwise.
func differences(path string, predicted, live any) (found []string) {
	switch predicted := predicted.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			for _, key := range slices.Sorted(maps.Keys(predicted)) {
				at := key
				if path != "" {
					at = path + "." + key
				}
				if value, exists := live[key]; exists {
					found = append(found, differences(at, predicted[key], value)...)
				} else {
					found = append(found, at)
				}
			}
			return found
		}
	case []any:
		if live, ok := live.([]any); ok && len(live) == len(predicted) {
			for i := range predicted {
				found = append(found, differences(path+".[]", predicted[i], live[i])...)
			}
			return found
		}
	}
	if !reflect.DeepEqual(predicted, live) {
		return []string{path}
	}
	return nil
}
