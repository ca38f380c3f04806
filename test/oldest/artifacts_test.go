// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oldest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const root = "../.."

// newer are the resources that the programs use where Kubernetes serves them, and do
// without elsewhere.
var newer = sets.New(
	// pkg/apiserver/options/late.go
	"admissionregistration.k8s.io/mutatingadmissionpolicies",
	"admissionregistration.k8s.io/mutatingadmissionpolicybindings",
)

func load(t *testing.T) *Document {
	t.Helper()
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// manifests returns every object below artifacts/.
func manifests(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	all := map[string][]*unstructured.Unstructured{}
	err := filepath.WalkDir(filepath.Join(root, "artifacts"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			// Neither a rule of alerts nor something that kubectl alone reads.
			if group := object.GroupVersionKind().Group; object.GetKind() != "" && group != "kustomize.config.k8s.io" {
				all[path] = append(all[path], object)
			}
		}
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

// TestManifestsAreServed: every manifest can be applied to the oldest Kubernetes.
func TestManifestsAreServed(t *testing.T) {
	d := load(t)
	for path, objects := range manifests(t) {
		for _, object := range objects {
			if kind := object.GroupVersionKind(); OfKubernetes(kind.Group) && !d.ServesKind(kind) {
				t.Errorf("%s: Kubernetes %s does not serve %s", path, d.Kubernetes, kind)
			}
		}
	}
}

// TestRightsAreServed: all that the programs may do with Kubernetes, and so all that they
// do, the oldest Kubernetes serves as version v1, which is what their clients use.
func TestRightsAreServed(t *testing.T) {
	d := load(t)
	rules := 0
	for path, objects := range manifests(t) {
		for _, object := range objects {
			for _, rule := range rulesOf(t, object) {
				rules++
				for _, problem := range unservedRights(d, rule) {
					t.Errorf("%s: %s %s: %s", path, object.GetKind(), object.GetName(), problem)
				}
			}
		}
	}
	if rules == 0 {
		t.Error("no rule was found: nothing was tested")
	}
}

func rulesOf(t *testing.T, object *unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
		return nil
	}
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

func unservedRights(d *Document, rule rbacv1.PolicyRule) []string {
	var problems []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if !OfKubernetes(group) || newer.Has(group+"/"+resource) {
				continue
			}
			name, sub, _ := strings.Cut(resource, "/")
			found := d.Find(schema.GroupVersionResource{Group: group, Version: "v1", Resource: name})
			for _, verb := range rule.Verbs {
				// Nothing is requested with this verb: the API server asks which users have it.
				if verb == "use" {
					continue
				}
				if found == nil || !serves(found, sub, verb) {
					problems = append(problems, fmt.Sprintf("Kubernetes %s does not serve %s of %s in %q", d.Kubernetes, verb, resource, group))
				}
			}
		}
	}
	return problems
}

// TestUnservedRightIsFound shows that the test before can fail.
func TestUnservedRightIsFound(t *testing.T) {
	d := load(t)
	for name, rule := range map[string]rbacv1.PolicyRule{
		"resource":    {APIGroups: []string{"storage.k8s.io"}, Resources: []string{"volumeattributesclasses"}, Verbs: []string{"get"}},
		"verb":        {APIGroups: []string{""}, Resources: []string{"bindings"}, Verbs: []string{"list"}},
		"subresource": {APIGroups: []string{""}, Resources: []string{"pods/none"}, Verbs: []string{"get"}},
		"group":       {APIGroups: []string{"none.k8s.io"}, Resources: []string{"pods"}, Verbs: []string{"get"}},
	} {
		if len(unservedRights(d, rule)) != 1 {
			t.Errorf("%s: %v was not found to be unserved", name, rule)
		}
	}
}

// TestNewerIsNewer: what the oldest Kubernetes serves needs no exception.
func TestNewerIsNewer(t *testing.T) {
	d := load(t)
	for name := range newer {
		group, resource, _ := strings.Cut(name, "/")
		if d.Find(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}) != nil {
			t.Errorf("Kubernetes %s serves %s: remove the exception, and what does without it", d.Kubernetes, name)
		}
	}
}

var unstable = regexp.MustCompile(`"k8s\.io/(?:api|client-go/(?:kubernetes/typed|listers|informers|applyconfigurations))/\w+/v\d+(?:alpha|beta)\d+"|[A-Z]\w*\(\)\.V\d+(?:alpha|beta)\d+\(\)|\.[A-Z]\w+V\d+(?:alpha|beta)\d+\(\)`)

// TestOnlyStableVersions: the programs use no alpha or beta version of an API of Kubernetes,
// which newer releases serve no more.
func TestOnlyStableVersions(t *testing.T) {
	files := 0
	for _, dir := range []string{"cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/pkg/generated/") {
				return err
			}
			files++
			raw, err := os.ReadFile(path)
			for _, found := range unstable.FindAllString(string(raw), -1) {
				if !strings.HasSuffix(found, "EtcdV1beta2()") && found != "Etcd().V1beta2()" {
					t.Errorf("%s uses %s", path, found)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files == 0 {
		t.Error("no file was found: nothing was tested")
	}
	for _, bad := range []string{`"k8s.io/api/policy/v1beta1"`, "factory.Policy().V1beta1()", "kube.CertificatesV1alpha1()"} {
		if !unstable.MatchString(bad) {
			t.Errorf("%s was not found", bad)
		}
	}
}

// TestMemoryLimits: a program whose memory is limited knows of it, or it is ended for garbage
// that it could have collected.
func TestMemoryLimits(t *testing.T) {
	t.Parallel()
	limited := 0
	for path, objects := range manifests(t) {
		if !strings.Contains(path, "artifacts/install/") {
			continue
		}
		for _, object := range objects {
			if object.GetKind() != "Deployment" {
				continue
			}
			deployment := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
				t.Fatal(err)
			}
			for _, container := range deployment.Spec.Template.Spec.Containers {
				limited++
				limit := container.Resources.Limits.Memory().Value()
				if knows := goMemoryLimit(t, container.Env); limit == 0 || knows == 0 || knows > limit*9/10 {
					t.Errorf("%s: container %s may use %d bytes and has GOMEMLIMIT %d; want at most nine tenths", path, container.Name, limit, knows)
				}
			}
		}
	}
	if limited != 2 {
		t.Errorf("%d containers were found, want that of the API server and that of the controller", limited)
	}
}

// goMemoryLimit returns the bytes of GOMEMLIMIT; 0 if it is not set.
func goMemoryLimit(t *testing.T, env []corev1.EnvVar) int64 {
	t.Helper()
	for _, e := range env {
		if e.Name == "GOMEMLIMIT" {
			quantity, err := resource.ParseQuantity(strings.TrimSuffix(e.Value, "B"))
			if err != nil {
				t.Fatal(err)
			}
			return quantity.Value()
		}
	}
	return 0
}
