// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

func TestLife(t *testing.T) {
	t.Parallel()
	clusters := clustersIn(newNamespace(t))
	created, err := clusters.Create(t.Context(), newCluster("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.Generation != 1 || created.UID == "" || created.Spec.Repository != v1beta2.DefaultRepository {
		t.Errorf("unexpected object %+v", created)
	}
	if _, err := clusters.Create(t.Context(), newCluster("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second create: got %v", err)
	}

	merged, err := clusters.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"size":5}}`), metav1.PatchOptions{})
	if err != nil || *merged.Spec.Replicas != 5 || merged.Generation != 2 {
		t.Fatalf("merge patch: got %+v %v", merged.Spec, err)
	}
	patched, err := clusters.Patch(t.Context(), "a", types.JSONPatchType,
		[]byte(`[{"op":"test","path":"/spec/size","value":5},{"op":"replace","path":"/spec/size","value":7}]`), metav1.PatchOptions{})
	if err != nil || *patched.Spec.Replicas != 7 || patched.Generation != 3 {
		t.Fatalf("JSON patch: got %+v %v", patched.Spec, err)
	}
	created.Spec.Paused = true
	if _, err := clusters.Update(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an outdated update: got %v", err)
	}

	list, err := clusters.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.ResourceVersion == "" {
		t.Fatalf("list: got %v %v", list, err)
	}
	if err := clusters.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}); !apierrors.IsConflict(err) {
		t.Errorf("delete of another UID: got %v", err)
	}
	if err := clusters.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clusters.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: got %v", err)
	}
}

func TestNamespaceMustExist(t *testing.T) {
	t.Parallel()
	if _, err := clustersIn("no-such-namespace").Create(t.Context(), newCluster("a"), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

func TestStatusAndGeneration(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	withStatus := newCluster("a")
	withStatus.Status.Phase = v1beta2.ClusterPhaseRunning
	created := create(t, namespace, withStatus)
	if created.Status.Phase != "" {
		t.Errorf("a create set the phase %q", created.Status.Phase)
	}

	report := created.DeepCopy()
	report.Status = v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning, ObservedGeneration: 1, Replicas: 3}
	report.Spec.Replicas = ptr.To[int32](1)
	report.Labels = map[string]string{"from": "status"}
	reported, err := clustersIn(namespace).UpdateStatus(t.Context(), report, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if reported.Status.Phase != v1beta2.ClusterPhaseRunning || reported.Status.ObservedGeneration != 1 {
		t.Errorf("the status was not taken: %+v", reported.Status)
	}
	if *reported.Spec.Replicas != 3 || reported.Generation != 1 || len(reported.Labels) != 0 {
		t.Errorf("a status update changed more: size %d, generation %d, labels %v", *reported.Spec.Replicas, reported.Generation, reported.Labels)
	}

	change := reported.DeepCopy()
	change.Spec.Replicas = ptr.To[int32](5)
	change.Status.Phase = v1beta2.ClusterPhaseFailed
	changed, err := clustersIn(namespace).Update(t.Context(), change, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if changed.Generation != 2 || changed.Status.Phase != v1beta2.ClusterPhaseRunning || changed.Status.ObservedGeneration != 1 {
		t.Errorf("generation %d, status %+v", changed.Generation, changed.Status)
	}
}

// apply sends a server-side apply and returns the object.
func apply(t *testing.T, namespace, subresource, manager string, force bool, config map[string]any) (*v1beta2.EtcdCluster, error) {
	t.Helper()
	config["apiVersion"], config["kind"] = v1beta2.SchemeGroupVersion.String(), "EtcdCluster"
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	name := config["metadata"].(map[string]any)["name"].(string)
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	return clustersIn(namespace).Patch(t.Context(), name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: manager, Force: &force}, subresources...)
}

func TestServerSideApply(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	body := func() map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": "a"},
			"spec":     map[string]any{"size": 3, "version": "3.6.16"},
			"status":   map[string]any{"phase": "Failed"},
		}
	}
	first, err := apply(t, namespace, "", "gitops", false, body())
	if err != nil {
		t.Fatal(err)
	}
	if first.Generation != 1 || first.Status.Phase != "" {
		t.Errorf("generation %d, phase %q", first.Generation, first.Status.Phase)
	}
	if owns(first, "gitops", "f:status") || !owns(first, "gitops", "f:size") {
		t.Errorf("unexpected owners %s", owners(first))
	}
	again, err := apply(t, namespace, "", "gitops", false, body())
	if err != nil {
		t.Fatal(err)
	}
	if again.ResourceVersion != first.ResourceVersion {
		t.Errorf("an apply that changes nothing was written: %s, then %s", first.ResourceVersion, again.ResourceVersion)
	}

	other := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"size": 5}}
	_, err = apply(t, namespace, "", "person", false, other)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "gitops") || !strings.Contains(err.Error(), ".spec.size") {
		t.Errorf("got %v, want a conflict with gitops about .spec.size", err)
	}
	forced, err := apply(t, namespace, "", "person", true, other)
	if err != nil || *forced.Spec.Replicas != 5 || !owns(forced, "person", "f:size") || owns(forced, "gitops", "f:size") {
		t.Errorf("forced: %v, owners %s", err, owners(forced))
	}
}

func TestServerSideApplyOfTheStatus(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	applied, err := apply(t, namespace, "status", "controller", false, map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"from": "status"}},
		"spec":     map[string]any{"size": 7},
		"status": map[string]any{
			"phase":      "Running",
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if applied.Status.Phase != v1beta2.ClusterPhaseRunning || *applied.Spec.Replicas != 3 || len(applied.Labels) != 0 {
		t.Errorf("phase %q, size %d, labels %v", applied.Status.Phase, *applied.Spec.Replicas, applied.Labels)
	}
	if owns(applied, "controller", "f:spec") || owns(applied, "controller", "f:labels") || !owns(applied, "controller", "f:phase") {
		t.Errorf("unexpected owners %s", owners(applied))
	}
	// Conditions are a map by type: another manager adds its own.
	both, err := apply(t, namespace, "status", "backups", false, map[string]any{
		"metadata": map[string]any{"name": "a"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "BackupHealthy", "status": "False"}}},
	})
	var types []string
	for _, c := range both.Status.Conditions {
		if c.Type != v1beta2.ClusterConditionReady { // of every new object
			types = append(types, string(c.Type))
		}
	}
	if err != nil || !slices.Equal(types, []string{"Available", "BackupHealthy"}) {
		t.Errorf("conditions %v (%v), want those of both managers", both.Status.Conditions, err)
	}
}

// owns is true if the manager's entry mentions the field.
func owns(cluster *v1beta2.EtcdCluster, manager, field string) bool {
	for _, entry := range cluster.ManagedFields {
		if entry.Manager == manager && strings.Contains(entry.FieldsV1.GetRawString(), `"`+field+`"`) {
			return true
		}
	}
	return false
}

func owners(cluster *v1beta2.EtcdCluster) string {
	text, err := json.Marshal(cluster.ManagedFields)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	dry := []string{metav1.DryRunAll}
	if _, err := clustersIn(namespace).Create(t.Context(), newCluster("a"), metav1.CreateOptions{DryRun: dry}); err != nil {
		t.Fatal(err)
	}
	if _, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run created: %v", err)
	}
	created := create(t, namespace, newCluster("a"))
	if err := clustersIn(namespace).Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: dry}); err != nil {
		t.Fatal(err)
	}
	got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.ResourceVersion != created.ResourceVersion {
		t.Errorf("a dry run deleted or changed: %v", err)
	}
	invalid := newCluster("b")
	invalid.Spec.Version = "nonsense"
	if _, err := clustersIn(namespace).Create(t.Context(), invalid, metav1.CreateOptions{DryRun: dry}); !apierrors.IsInvalid(err) {
		t.Errorf("a dry run does not validate: %v", err)
	}
}

// TestEverythingWrongIsNamedAtOnce: one response names all errors, so that a user repairs a
// manifest in one step.
func TestEverythingWrongIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	wrong := newCluster("a")
	wrong.Spec.Replicas, wrong.Spec.Version = ptr.To[int32](99), "nonsense"
	wrong.Spec.Etcd = &v1beta2.EtcdOptions{ExtraArgs: []string{"--data-dir=/elsewhere"}}
	wrong.Spec.Pod = &v1beta2.PodPolicy{Labels: map[string]string{"app": "mine"}}
	_, err := clustersIn(newNamespace(t)).Create(t.Context(), wrong, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got %v, want invalid", err)
	}
	contains(t, err.Error(), "spec.size", "spec.version", "spec.etcd.extraArgs", "spec.pod.labels")
}

// TestFieldTwice: a duplicate field is rejected with strict field validation, and causes a
// warning otherwise, as everywhere in Kubernetes.
func TestFieldTwice(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	body := []byte(`{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster","metadata":{"name":"a"},"spec":{"size":3,"size":5,"version":"3.6.16"}}`)
	post := func(validation string) error {
		return env.etcd.EtcdV1beta2().RESTClient().Post().Namespace(namespace).Resource("etcdclusters").
			Param("fieldValidation", validation).SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
	}
	if err := post("Strict"); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `duplicate field "spec.size"`) {
		t.Errorf("strict: got %v, want a bad request that names spec.size", err)
	}
	if err := post("Ignore"); err != nil {
		t.Errorf("ignored: %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	huge := "--max-txn-ops=" + strings.Repeat("1", genericstore.MaxObjectBytes)
	large := newCluster("large")
	large.Spec.Etcd = &v1beta2.EtcdOptions{ExtraArgs: []string{huge}}
	rejected := func(what string, err error) {
		t.Helper()
		status := apierrors.APIStatus(nil)
		if !errors.As(err, &status) {
			t.Errorf("%s: got %.200v", what, err)
			return
		}
		if code := status.Status().Code; code != http.StatusUnprocessableEntity && code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: got %d %.200v, want 413 or 422", what, code, err)
		}
	}
	_, err := clustersIn(namespace).Create(t.Context(), large, metav1.CreateOptions{})
	rejected("create", err)

	created := create(t, namespace, newCluster("a"))
	created.Spec.Etcd = large.Spec.Etcd
	_, err = clustersIn(namespace).Update(t.Context(), created, metav1.UpdateOptions{})
	rejected("update", err)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"etcd": map[string]any{"extraArgs": []string{huge}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = clustersIn(namespace).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{})
	rejected("patch", err)
	large.Spec.Etcd.ExtraArgs = []string{huge, huge, huge}
	_, err = clustersIn(namespace).Create(t.Context(), large, metav1.CreateOptions{})
	rejected("create of more than a request may have", err)
}

func TestDeletionProtection(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	protected := newCluster("a")
	protected.Spec.DeletionProtection = ptr.To(true)
	create(t, namespace, protected)
	says := rejectedKubectl(t, "", "delete", "etcd", "a", "-n", namespace)
	contains(t, says, "Forbidden", "spec.deletionProtection")
	if err := clustersIn(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete of all: got %v", err)
	}
	mustKubectl(t, "patch", "etcd", "a", "-n", namespace, "--type=merge", "-p", `{"spec":{"deletionProtection":false}}`)
	mustKubectl(t, "delete", "etcd", "a", "-n", namespace)
}

func TestFieldSelectors(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	older := newCluster("older")
	older.Spec.Version = "3.5.21"
	create(t, namespace, older)
	running := create(t, namespace, newCluster("running"))
	running.Status.Phase = v1beta2.ClusterPhaseRunning
	if _, err := clustersIn(namespace).UpdateStatus(t.Context(), running, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{
		"spec.version=3.5.21":                                       "older",
		"spec.version!=3.5.21":                                      "running",
		"status.phase=Running":                                      "running",
		"metadata.name=older":                                       "older",
		"spec.version=3.6.16,status.phase=Running":                  "running",
		"metadata.namespace=" + namespace + ",status.phase=Running": "running",
	} {
		list, err := clustersIn(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != want {
			t.Errorf("%s: got %v %v, want %s", selector, list, err, want)
		}
	}
	_, err := clustersIn(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.size=3"})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.version") {
		t.Errorf("got %v, want a bad request that names the fields that work", err)
	}
}
