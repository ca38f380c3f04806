// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// timeout bounds each wait for a cluster; Flux's own default is the interval of a Kustomization.
const timeout = 3 * time.Minute

var kubeconfig = flag.String("flux-kubeconfig", "", "kubeconfig of a Kubernetes with the operator installed; the tests are skipped without it")

// kustomization is what Flux does for one Kustomization: it applies the manifests, waits for
// them, looks for drift, and prunes what left the source.
type kustomization struct {
	*testing.T
	*ssa.ResourceManager
	namespace string
}

func begin(t *testing.T, namespace string) *kustomization {
	t.Helper()
	if *kubeconfig == "" {
		t.Skip("needs -flux-kubeconfig, a Kubernetes with the operator installed; make e2e gives it")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(t, err)
	httpClient, err := rest.HTTPClientFor(config)
	must(t, err)
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	must(t, err)
	kube, err := client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper})
	must(t, err)
	poller := polling.NewStatusPoller(kube, mapper, polling.Options{})
	k := &kustomization{T: t, ResourceManager: ssa.NewResourceManager(kube, poller, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})}
	k.namespace = fmt.Sprintf("%s-%d", namespace, time.Now().UnixNano()%1e9)
	home := k.read("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + k.namespace + "}\n")
	k.apply(home)
	t.Cleanup(func() {
		// The context of the test has ended when this runs.
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if _, err := k.DeleteAll(ctx, home, ssa.DefaultDeleteOptions()); err != nil {
			t.Errorf("delete the namespace: %v", err)
		}
		if err := k.WaitForTermination(home, k.waitOptions()); err != nil {
			t.Errorf("wait for the end of the namespace: %v", err)
		}
	})
	return k
}

// read parses manifests as kustomize-controller does.
func (k *kustomization) read(manifests string) []*unstructured.Unstructured {
	k.Helper()
	objects, err := utils.ReadObjects(strings.NewReader(manifests))
	must(k, err)
	must(k, normalize.UnstructuredList(objects))
	for _, object := range objects {
		if object.GetKind() != "Namespace" {
			object.SetNamespace(k.namespace)
		}
	}
	k.SetOwnerLabels(objects, "databases", "flux-system")
	return objects
}

// apply applies objects, and returns what that did to each, by kind and name.
func (k *kustomization) apply(objects []*unstructured.Unstructured) map[string]ssa.Action {
	k.Helper()
	changes, err := k.ApplyAllStaged(k.Context(), objects, ssa.DefaultApplyOptions())
	must(k, err)
	actions := map[string]ssa.Action{}
	for _, entry := range changes.Entries {
		actions[entry.ObjMetadata.GroupKind.Kind+"/"+entry.ObjMetadata.Name] = entry.Action
	}
	return actions
}

func (k *kustomization) waitOptions() ssa.WaitOptions {
	return ssa.WaitOptions{Interval: 200 * time.Millisecond, Timeout: timeout, FailFast: true}
}

// cluster reads an EtcdCluster.
func (k *kustomization) cluster(name string) *unstructured.Unstructured {
	k.Helper()
	object := k.read("apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: " + name + "}\n")[0]
	must(k, k.Client().Get(k.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

// requireReady fails unless every declared member is ready and the condition Ready says so.
func (k *kustomization) requireReady(name string, members int) {
	k.Helper()
	object := k.cluster(name)
	ready, _, err := unstructured.NestedStringSlice(object.Object, "status", "members", "ready")
	must(k, err)
	if len(ready) != members {
		k.Errorf("Flux calls %s current with members %v, want %d", name, ready, members)
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	must(k, err)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Ready" {
			if condition["status"] != "True" {
				k.Errorf("Flux calls %s current while Ready is %v", name, condition)
			}
			return
		}
	}
	k.Errorf("%s has no condition Ready", name)
}

const plain = `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata:
  name: plain
spec:
  size: %d
`

// TestClusterOfAKustomization: a cluster is created, waited for, found unchanged, changed,
// brought back after a change by another program, and pruned.
func TestClusterOfAKustomization(t *testing.T) {
	k := begin(t, "flux-life")
	one := k.read(fmt.Sprintf(plain, 1))
	require(t, k.apply(one), map[string]ssa.Action{"EtcdCluster/plain": ssa.CreatedAction})
	must(t, k.Wait(one, k.waitOptions()))
	k.requireReady("plain", 1)

	// Defaults, the version among them, and the status are no drift.
	require(t, k.apply(k.read(fmt.Sprintf(plain, 1))), map[string]ssa.Action{"EtcdCluster/plain": ssa.UnchangedAction})
	k.requireDrift("plain", 1, ssa.UnchangedAction)

	three := k.read(fmt.Sprintf(plain, 3))
	require(t, k.apply(three), map[string]ssa.Action{"EtcdCluster/plain": ssa.ConfiguredAction})
	must(t, k.Wait(three, k.waitOptions()))
	k.requireReady("plain", 3)

	// Another client scales: Flux sees the drift, and takes it back.
	scaled := k.cluster("plain")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":5}}`))
	must(t, k.Client().Patch(k.Context(), scaled, patch, client.FieldOwner("kubectl-edit")))
	k.requireDrift("plain", 3, ssa.ConfiguredAction)
	require(t, k.apply(k.read(fmt.Sprintf(plain, 3))), map[string]ssa.Action{"EtcdCluster/plain": ssa.ConfiguredAction})
	k.requireDrift("plain", 3, ssa.UnchangedAction)

	// What left the source is pruned, and does not exist when the wait ends.
	_, err := k.DeleteAll(k.Context(), three, ssa.DeleteOptions{PropagationPolicy: "Background", Inclusions: k.GetOwnerLabels("databases", "flux-system")})
	must(t, err)
	must(t, k.WaitForTermination(three, k.waitOptions()))
	if err := k.Client().Get(k.Context(), client.ObjectKeyFromObject(three[0]), three[0]); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("read the pruned cluster: %v, want NotFound", err)
	}
}

// requireDrift compares what Flux's drift detection says of a cluster of that size.
func (k *kustomization) requireDrift(name string, size int, want ssa.Action) {
	k.Helper()
	entry, _, _, err := k.Diff(k.Context(), k.read(fmt.Sprintf(strings.Replace(plain, "plain", name, 1), size))[0], ssa.DefaultDiffOptions())
	must(k, err)
	if entry.Action != want {
		k.Errorf("drift of %s is %q, want %q", name, entry.Action, want)
	}
}

// TestStuckClusterFailsFast: a cluster that waits for a person ends the wait with its name,
// long before the limit.
func TestStuckClusterFailsFast(t *testing.T) {
	k := begin(t, "flux-stuck")
	taken := k.read("apiVersion: v1\nkind: Service\nmetadata: {name: late-client}\nspec: {ports: [{port: 80}]}\n")
	k.apply(taken)
	late := k.read(strings.Replace(fmt.Sprintf(plain, 1), "plain", "late", 1))
	k.apply(late)
	err := k.Wait(late, k.waitOptions())
	if err == nil || !strings.Contains(err.Error(), "EtcdCluster/"+k.namespace+"/late status: 'Failed'") {
		t.Fatalf("the wait ended with %v, want the failed cluster", err)
	}
	_, err = k.DeleteAll(t.Context(), taken, ssa.DefaultDeleteOptions())
	must(t, err)
	// Until the controller looks again the cluster is still stalled. Flux retries at its interval.
	must(t, wait.PollUntilContextTimeout(t.Context(), time.Second, timeout, true, func(context.Context) (bool, error) {
		return k.Wait(late, k.waitOptions()) == nil, nil
	}))
	k.requireReady("late", 1)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func require(t testing.TB, got, want map[string]ssa.Action) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("apply: %v, want %v", got, want)
	}
}
