// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kustomize builds artifacts/NAME with components.
func kustomize(t *testing.T, base string, components ...string) objects {
	t.Helper()
	own, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err, "find the directory of the test")
	artifacts, err := filepath.Abs(filepath.Join(root, "artifacts"))
	must(t, err, "find the artifacts")
	relative, err := filepath.Rel(own, artifacts)
	must(t, err, "find the artifacts")
	text := fmt.Sprintf("resources: [%s/%s]\ncomponents:\n", relative, base)
	for _, component := range components {
		text += fmt.Sprintf("  - %s/components/%s\n", relative, component)
	}
	must(t, os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text), 0o600), "write a kustomization")
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), own)
	must(t, err, "build artifacts/%s with %v", base, components)
	text2, err := built.AsYaml()
	must(t, err, "write artifacts/%s", base)
	found := objects{}
	found.add(t, base, string(text2))
	return found
}

// withoutAdditions removes what the chart adds for Helm: the hooks of helm uninstall, the
// annotation that keeps the PVC, and the checksum that restarts API servers.
func (o objects) withoutAdditions() objects {
	left := objects{}
	for key, object := range o {
		annotations := object.GetAnnotations()
		if annotations[hookKey] != "" {
			continue
		}
		delete(annotations, keepKey)
		object = *object.DeepCopy()
		object.SetAnnotations(annotations)
		if len(annotations) == 0 {
			object.SetAnnotations(nil)
		}
		if pod, ok := o.field(key, "spec.template.metadata.annotations").(map[string]any); ok {
			pod = maps.Clone(pod)
			delete(pod, checksumKey)
			object.Object["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)["annotations"] = pod
		}
		left[key] = object
	}
	return left
}

func same(t *testing.T, got, want objects) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		object, ok := got[key]
		if !ok {
			t.Errorf("the chart has no %s", key)
			continue
		}
		if diff := cmp.Diff(want[key].Object, object.Object); diff != "" {
			t.Errorf("%s differs (- artifacts, + chart):\n%s", key, diff)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			t.Errorf("only the chart has %s", key)
		}
	}
}

// TestInstallation compares the chart with the kustomizations of artifacts. Helm creates the
// namespace, so the chart has none.
func TestInstallation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		base       string
		components []string
		values     string
	}{
		"defaults":          {base: "install"},
		"high availability": {base: "ha", values: read(t, "charts", operator, "ci", "ha-values.yaml")},
		"no storage backup": {base: "ha", components: []string{"no-storage-backup"},
			values: merged(t, read(t, "charts", operator, "ci", "ha-values.yaml"), "apiserver: {storage: {managed: {backup: {enabled: false}}}}")},
		"no backup of the embedded storage": {base: "install", components: []string{"no-storage-backup"},
			values: "apiserver: {storage: {embedded: {backup: {enabled: false}}}}"},
		"port-10250":        {base: "install", components: []string{"port-10250"}, values: "apiserver: {port: 10250}"},
		"host-network":      {base: "install", components: []string{"host-network"}, values: "apiserver: {port: 10262, hostNetwork: true}"},
		"openshift":         {base: "install", components: []string{"openshift"}, values: "openshift: true"},
		"audit":             {base: "install", components: []string{"audit"}, values: "apiserver: {audit: true}"},
		"encryption":        {base: "install", components: []string{"encryption"}, values: "apiserver: {encryption: true}"},
		"read-tls-secrets":  {base: "install", components: []string{"read-tls-secrets"}, values: "rbac: {readTLSSecrets: true}"},
		"no-existing-etcd":  {base: "install", components: []string{"no-existing-etcd"}, values: "existingEtcd: {allowed: false}"},
		"secure-metrics":    {base: "install", components: []string{"secure-metrics"}, values: "controller: {secureMetrics: true}"},
		"policy-parameters": {base: "install", components: []string{"policy-parameters"}, values: "rbac: {policyParameters: true}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := kustomize(t, test.base, test.components...)
			delete(want, "Namespace//"+namespace)
			same(t, defaults(operator, test.values).render(t).withoutAdditions(), want)
		})
	}
}

// TestAdditions names everything that the chart has and artifacts/install has not.
func TestAdditions(t *testing.T) {
	t.Parallel()
	const uninstall = "etcd-operator-uninstall"
	want := map[string]string{
		"PersistentVolumeClaim/etcd-operator-system/etcd-operator-apiserver-data":      keepKey,
		"PersistentVolumeClaim/etcd-operator-system/etcd-operator-storage-backup":      keepKey,
		"ServiceAccount/etcd-operator-system/" + uninstall:                             hookKey,
		"ClusterRole//" + uninstall:                                                    hookKey,
		"ClusterRoleBinding//" + uninstall:                                             hookKey,
		"Job/etcd-operator-system/" + uninstall + "-rejected-while-etcdclusters-exist": hookKey,
	}
	got := map[string]string{}
	for key, object := range defaults(operator, "").render(t) {
		for _, annotation := range []string{keepKey, hookKey} {
			if object.GetAnnotations()[annotation] != "" {
				got[key] = annotation
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("additions of the chart (- want, + got):\n%s", diff)
	}
}

// TestOperatorPolicies compares the NetworkPolicies with those of artifacts.
func TestOperatorPolicies(t *testing.T) {
	t.Parallel()
	want := objects{}
	want.add(t, "operator.yaml", read(t, "artifacts", "network-policies", "operator.yaml"))
	got := defaults(operator, "networkPolicy: {enabled: true}").render(t)
	maps.DeleteFunc(got, func(key string, _ unstructured.Unstructured) bool { return !strings.HasPrefix(key, "NetworkPolicy/") })
	same(t, got, want)
}

// TestMemberPolicies compares the NetworkPolicies of members with those of artifacts, which
// have no namespace and other names.
func TestMemberPolicies(t *testing.T) {
	t.Parallel()
	want := objects{}
	want.add(t, "members.yaml", read(t, "artifacts", "network-policies", "members.yaml"))
	got := objects{}
	for key, object := range defaults(cluster, "networkPolicy: {enabled: true}").render(t) {
		if object.GetKind() != "NetworkPolicy" {
			continue
		}
		if object.GetNamespace() != "default" {
			t.Errorf("%s is not in the namespace of the release", key)
		}
		object.SetNamespace("")
		object.SetName(strings.TrimPrefix(object.GetName(), "example-"))
		got["NetworkPolicy//"+object.GetName()] = object
	}
	same(t, got, want)
}

// TestPodMonitors compares what podMonitor.enabled adds with the PodMonitors of artifacts.
func TestPodMonitors(t *testing.T) {
	t.Parallel()
	for values, file := range map[string][]string{
		"":                                  {"monitoring", "controller.yaml"},
		"controller: {secureMetrics: true}": {"components", "secure-metrics", "podmonitor.yaml"},
	} {
		want := objects{}
		want.add(t, "apiserver.yaml", read(t, "artifacts", "monitoring", "apiserver.yaml"))
		want.add(t, values, read(t, append([]string{"artifacts"}, file...)...))
		got := defaults(operator, values+"\npodMonitor: {enabled: true}").render(t)
		without := defaults(operator, values).render(t)
		maps.DeleteFunc(got, func(key string, _ unstructured.Unstructured) bool {
			_, also := without[key]
			return also
		})
		same(t, got, want)
	}

	// The chart of one cluster has a PodMonitor for its own members, which must label them
	// like the PodMonitor for all members.
	all := objects{}
	all.add(t, "members.yaml", read(t, "artifacts", "monitoring", "members.yaml"))
	const endpoints = "spec.podMetricsEndpoints"
	if diff := cmp.Diff(all.field("PodMonitor/etcd-operator-system/etcd-operator-members", endpoints),
		defaults(cluster, "podMonitor: {enabled: true}").render(t).field("PodMonitor/default/example-etcd", endpoints)); diff != "" {
		t.Errorf("%s of members (- artifacts, + chart):\n%s", endpoints, diff)
	}
}

// TestAlerts compares the PrometheusRule with the alerts of artifacts.
func TestAlerts(t *testing.T) {
	t.Parallel()
	alerts := read(t, "artifacts", "monitoring", "alerts.yaml")
	if alerts != read(t, "charts", operator, "files", "alerts.yaml") {
		t.Error("charts/etcd-operator/files/alerts.yaml differs: copy artifacts/monitoring/alerts.yaml to it")
	}
	want := map[string]any{}
	must(t, yaml.Unmarshal([]byte(alerts), &want), "parse the alerts")
	got := defaults(operator, "prometheusRule: {enabled: true}").render(t).field("PrometheusRule/etcd-operator-system/etcd-operator", "spec")
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("alerts (- artifacts, + chart):\n%s", diff)
	}
}

// TestVersions: the charts install the release that artifacts install.
func TestVersions(t *testing.T) {
	t.Parallel()
	install := read(t, "artifacts", "install", "kustomization.yaml")
	for _, name := range []string{operator, cluster} {
		metadata := load(t, name).Metadata
		if !strings.Contains(install, "newTag: "+metadata.AppVersion+"\n") || "v"+metadata.Version != metadata.AppVersion {
			t.Errorf("chart %s has version %s and appVersion %s; artifacts/install/kustomization.yaml has another release",
				name, metadata.Version, metadata.AppVersion)
		}
	}
}
