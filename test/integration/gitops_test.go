// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	unversioned = "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: a}\nspec: {size: 3}\n"
	versioned36 = "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: a}\nspec: {size: 3, version: 3.6.8}\n"
)

// fed runs kubectl with something to read.
func fed(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, err := env.kubectlWith(t.Context(), nil, input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func versionOf(t *testing.T, namespace string) string {
	t.Helper()
	got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Spec.Version
}

// TestDefaultVersionIsStored applies a manifest that names no version in every way that
// clients know, and finds the version that was stored first, or named last.
func TestDefaultVersionIsStored(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	is := func(want, after string) {
		t.Helper()
		if got := versionOf(t, namespace); got != want {
			t.Errorf("after %s the version is %q, want %q", after, got, want)
		}
	}
	const older = "3.6.8"
	contains(t, fed(t, unversioned, "apply", "-n", namespace, "-f", "-"), "created")
	is(v1beta2.DefaultVersion, "apply")
	contains(t, fed(t, unversioned, "apply", "-n", namespace, "-f", "-"), "unchanged")
	fed(t, unversioned, "diff", "-n", namespace, "-f", "-")

	// A version that the server would not choose now stands for one that an earlier server chose.
	mustKubectl(t, "patch", "etcd", "a", "-n", namespace, "--type=merge", "-p", `{"spec":{"version":"`+older+`"}}`)
	is(older, "a patch")
	fed(t, unversioned, "diff", "-n", namespace, "-f", "-")
	contains(t, fed(t, unversioned, "apply", "-n", namespace, "-f", "-"), "unchanged")
	is(older, "another apply")
	contains(t, fed(t, unversioned, "replace", "-n", namespace, "-f", "-"), "replaced")
	is(older, "a replace")
	mustKubectl(t, "patch", "etcd", "a", "-n", namespace, "--type=json", "-p", `[{"op":"remove","path":"/spec/version"}]`)
	is(older, "the removal of the field")
	contains(t, fed(t, strings.Replace(unversioned, "size: 3", "size: 5", 1), "apply", "-n", namespace, "-f", "-"), "configured")
	is(older, "a change of the size")

	// A manifest that named a version and does so no more.
	fed(t, versioned36, "apply", "-n", namespace, "-f", "-")
	fed(t, unversioned, "apply", "-n", namespace, "-f", "-")
	is(older, "an apply that names the version no more")

	contains(t, fed(t, unversioned, "replace", "--force", "-n", namespace, "-f", "-"), "replaced")
	is(v1beta2.DefaultVersion, "a replace by a new object")
}

// TestDefaultVersionOfServerSideApply checks that the stored default version has no field manager,
// so that a client can set the field without a conflict, and can remove it again.
func TestDefaultVersionOfServerSideApply(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	apply := func(manager, manifest string) string {
		t.Helper()
		return fed(t, manifest, "apply", "--server-side", "--field-manager="+manager, "-n", namespace, "-f", "-")
	}
	apply("one", unversioned)
	if got := versionOf(t, namespace); got != v1beta2.DefaultVersion {
		t.Fatalf("version %q", got)
	}
	owners := func(field string) (names []string) {
		t.Helper()
		got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range got.ManagedFields {
			if strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+field+`":{}`) {
				names = append(names, entry.Manager)
			}
		}
		return names
	}
	for _, field := range []string{"version", "repository", "podDisruptionBudget"} {
		if names := owners(field); len(names) > 0 {
			t.Errorf("the default of %s belongs to %v", field, names)
		}
	}

	// Two managers of different fields do not meet.
	const version = "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: a}\nspec: {version: 3.6.8}\n"
	apply("two", version)
	apply("one", strings.Replace(unversioned, "size: 3", "size: 5", 1))
	apply("two", strings.Replace(version, "3.6.8", "3.6.11", 1))
	if got, names := versionOf(t, namespace), owners("version"); got != "3.6.11" || len(names) != 1 || names[0] != "two" {
		t.Errorf("version %s of %v", got, names)
	}
	if names := owners("size"); len(names) != 1 || names[0] != "one" {
		t.Errorf("size of %v", names)
	}
	// Of the same field they do.
	contains(t, rejectedKubectl(t, versioned36, "apply", "--server-side", "--field-manager=three", "-n", namespace, "-f", "-"),
		"conflict", `"one"`, ".spec.size", `"two"`, ".spec.version")

	// kubectl scale takes the size over; the next apply of its former owner reports a
	// conflict.
	mustKubectl(t, "scale", "etcd/a", "-n", namespace, "--replicas=3")
	contains(t, rejectedKubectl(t, strings.Replace(unversioned, "size: 3", "size: 5", 1), "apply", "--server-side", "--field-manager=one", "-n", namespace, "-f", "-"), "conflict", ".spec.size")

	// The manager of the version no longer declares it: the version stays the same.
	apply("two", strings.Replace(version, "spec: {version: 3.6.8}", "spec: {paused: true}", 1))
	if got, names := versionOf(t, namespace), owners("version"); got != "3.6.11" || len(names) > 0 {
		t.Errorf("after its manager no longer declares it, the version is %s of %v", got, names)
	}
}

// TestExamplesApplyTwice applies each published manifest twice, and asks for the difference: none, neither for kubectl diff,
// nor for Terraform. For Argo CD, test/argocd asks.
func TestExamplesApplyTwice(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"*.yaml", filepath.Join("compat", "*.yaml")} {
		found, err := filepath.Glob(filepath.Join(env.repo, "artifacts", "examples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 15 {
		t.Fatalf("only %v", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			namespace := newNamespace(t)
			manifest := strings.ReplaceAll(string(text), "namespace: default", "namespace: "+namespace)
			fed(t, manifest, "apply", "-n", namespace, "-f", "-")
			fed(t, manifest, "diff", "-n", namespace, "-f", "-")
			requireReadBack(t, namespace, file, manifest)
			for _, line := range lines(fed(t, manifest, "apply", "-n", namespace, "-f", "-")) {
				if !strings.HasPrefix(line, "Warning: ") && !strings.HasSuffix(line, " unchanged") {
					t.Errorf("applied again: %s", line)
				}
			}

			namespace = newNamespace(t)
			manifest = strings.ReplaceAll(string(text), "namespace: default", "namespace: "+namespace)
			version := func() string {
				t.Helper()
				fed(t, manifest, "apply", "--server-side", "-n", namespace, "-f", "-")
				return fed(t, manifest, "get", "-n", namespace, "-f", "-", "-o", "jsonpath={..metadata.resourceVersion}")
			}
			first := version()
			fed(t, manifest, "diff", "--server-side", "-n", namespace, "-f", "-")
			if again := version(); again != first || first == "" {
				t.Errorf("the same server-side apply changes resource versions from %s to %s", first, again)
			}
		})
	}
}

// TestPrune deletes with an ApplySet what left the set, and nothing else.
func TestPrune(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	apply := func(manifest string) string {
		t.Helper()
		output, err := env.kubectlWith(t.Context(), []string{"KUBECTL_APPLYSET=true"}, manifest,
			"apply", "-n", namespace, "--prune", "--applyset=etcds", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		return output
	}
	create(t, namespace, newCluster("by-hand"))
	second := strings.Replace(unversioned, "name: a", "name: b", 1)
	apply(unversioned + "---\n" + second)
	contains(t, apply(second), "etcdcluster.etcd.database.coreos.com/a pruned", "etcdcluster.etcd.database.coreos.com/b unchanged")
	if left := mustKubectl(t, "get", "etcd", "-n", namespace, "-o", "name"); !strings.Contains(left, "/b\n") || !strings.Contains(left, "/by-hand\n") || strings.Contains(left, "/a\n") {
		t.Errorf("left are %s", left)
	}

	// What is protected stays, and the apply says so.
	mustKubectl(t, "patch", "etcd", "b", "-n", namespace, "--type=merge", "-p", `{"spec":{"deletionProtection":true}}`)
	output, err := env.kubectlWith(t.Context(), []string{"KUBECTL_APPLYSET=true"}, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"apply", "-n", namespace, "--prune", "--applyset=etcds", "-f", "-")
	if err == nil || !strings.Contains(output, "deletionProtection") {
		t.Errorf("a protected cluster was pruned, or without an error: %v %s", err, output)
	}
	mustKubectl(t, "get", "etcd", "b", "-n", namespace)
}

// TestNewObjectsAreNotReady: before a controller has looked at an object no client takes
// it for ready.
func TestNewObjectsAreNotReady(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	fed(t, unversioned, "apply", "-n", namespace, "-f", "-")
	for _, file := range []string{"backup-s3.yaml", "restore-s3.yaml"} {
		mustKubectl(t, "apply", "-n", namespace, "-f", filepath.Join(env.repo, "artifacts", "examples", "compat", file))
	}
	for _, kind := range []string{"etcdclusters", "etcdbackups", "etcdrestores"} {
		list := unstructured.UnstructuredList{}
		if err := json.Unmarshal([]byte(mustKubectl(t, "get", kind, "-n", namespace, "-o", "json")), &list); err != nil || len(list.Items) != 1 {
			t.Fatalf("%s: %d, %v", kind, len(list.Items), err)
		}
		result, err := status.Compute(&list.Items[0])
		if err != nil || result.Status != status.InProgressStatus {
			t.Errorf("%s: %+v, %v; want InProgress", kind, result, err)
		}
		contains(t, mustKubectl(t, "get", kind, "-n", namespace, "-o", `jsonpath={.items[0].status.conditions[?(@.type=="Ready")]}`),
			`"status":"Unknown"`, `"reason":"NotObserved"`, `"lastTransitionTime":"20`)
	}
	contains(t, rejectedKubectl(t, "", "wait", "--for=condition=Ready", "etcd/a", "-n", namespace, "--timeout=1s"), "timed out")
}

// TestWarningsAreShown sees on the terminal what is dangerous.
func TestWarningsAreShown(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	contains(t, fed(t, strings.Replace(versioned36, "size: 3, version: 3.6.8", "size: 4, version: 3.4.20", 1), "apply", "-n", namespace, "-f", "-"),
		"Warning: spec.size: 4 members tolerate no more failures than 3",
		"Warning: spec.version: etcd 3.4.20 has reached its end of life",
		"Warning: spec.pod.persistentVolumeClaimSpec: is not set")
}
