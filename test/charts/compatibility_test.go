// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helm3 "helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	engine3 "helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// installations are values that render every template.
func installations(t *testing.T) []release {
	t.Helper()
	everything := merged(t, read(t, "charts", operator, "ci", "ha-values.yaml"), `
commonLabels: {team: data}
imagePullSecrets: [{name: pull}]
apiserver: {audit: true, hostNetwork: true, extraArgs: [--v=4], extraEnv: [{name: A, value: b}]}
controller: {watchNamespace: etcd-operator-system}
rbac: {readTLSSecrets: true, policyParameters: true}
existingEtcd: {allowed: false}
networkPolicy: {enabled: true, apiserverEgress: [{ports: [{port: 2379}]}]}
podMonitor: {enabled: true, labels: {release: p}}
prometheusRule: {enabled: true, labels: {release: p}}
`)
	return []release{
		defaults(operator, ""),
		defaults(operator, everything),
		{chart: operator, name: "other", namespace: "other-namespace", values: "networkPolicy: {enabled: true}\napiserver: {audit: true}\nrbac: {readTLSSecrets: true, policyParameters: true}"},
		defaults(cluster, ""),
		defaults(cluster, read(t, "charts", cluster, "ci", "backup-values.yaml")),
	}
}

// TestLint runs what helm lint runs.
func TestLint(t *testing.T) {
	t.Parallel()
	for _, r := range installations(t) {
		for _, version := range []string{"v1.32.0", "v1.37.0"} {
			kubernetes, err := common.ParseKubeVersion(version)
			must(t, err, "parse version %s", version)
			result := lint.RunAll(chartDir(r.chart), parse(t, r.values), r.namespace, lint.WithKubeVersion(kubernetes))
			for _, message := range result.Messages {
				if message.Severity > support.InfoSev {
					t.Errorf("chart %s on %s: %v", r.chart, version, message)
				}
			}
		}
	}
}

// TestKubernetesTypes decodes the objects of Kubernetes strictly.
func TestKubernetesTypes(t *testing.T) {
	t.Parallel()
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Strict: true})
	for _, r := range installations(t) {
		for key, object := range r.render(t) {
			if !scheme.Scheme.Recognizes(object.GroupVersionKind()) {
				continue
			}
			data, err := object.MarshalJSON()
			must(t, err, "write %s", key)
			if _, _, err = decoder.Decode(data, nil, nil); err != nil {
				t.Errorf("chart %s: %s: %v", r.chart, key, err)
			}
		}
	}
}

// TestNamespace: everything follows the namespace of the release, and nothing its name.
func TestNamespace(t *testing.T) {
	t.Parallel()
	const values = "networkPolicy: {enabled: true}\napiserver: {audit: true}\nrbac: {readTLSSecrets: true}\npodMonitor: {enabled: true}"
	text := func(list objects) string {
		var documents []string
		for key, object := range list {
			data, err := yaml.Marshal(object.Object)
			must(t, err, "write %s", key)
			documents = append(documents, strings.ReplaceAll(string(data), namespace, "other-namespace"))
		}
		slices.Sort(documents)
		return strings.Join(documents, "---\n")
	}
	there := release{chart: operator, name: "other", namespace: "other-namespace", values: values}.render(t)
	for key, object := range there {
		if data, err := yaml.Marshal(object.Object); err != nil || strings.Contains(string(data), namespace) {
			t.Errorf("%s names the namespace %s (error %v)", key, namespace, err)
		}
	}
	if diff := cmp.Diff(text(defaults(operator, values).render(t)), text(there)); diff != "" {
		t.Errorf("release other in other-namespace (- want, + got):\n%s", diff)
	}
}

// TestHelm3 renders with Helm 3 what Helm 4 renders.
func TestHelm3(t *testing.T) {
	t.Parallel()
	for _, r := range installations(t) {
		want, err := r.files(t)
		must(t, err, "render chart %s with Helm 4", r.chart)
		c, err := helm3.LoadDir(chartDir(r.chart))
		must(t, err, "load chart %s with Helm 3", r.chart)
		options := chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, IsInstall: true, Revision: 1}
		values, err := chartutil.ToRenderValues(c, parse(t, r.values), options, nil)
		must(t, err, "check the values of chart %s with Helm 3", r.chart)
		files, err := engine3.Render(c, values)
		must(t, err, "render chart %s with Helm 3", r.chart)
		got := map[string]string{}
		for name, text := range files {
			got[strings.TrimPrefix(name, r.chart+templatesDir)] = text
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("chart %s (- Helm 4, + Helm 3):\n%s", r.chart, diff)
		}
	}
}

// TestOperatorNotes: the notes name the next commands, and what helm uninstall does.
func TestOperatorNotes(t *testing.T) {
	t.Parallel()
	for values, want := range map[string][]string{
		"":                               {"kubectl wait --for=condition=Available", "helm install example", "every 30 minutes, on the PVC etcd-operator-storage-backup", "helm uninstall keeps both PVCs", "helm uninstall fails while an EtcdCluster exists"},
		"uninstall: {force: true}":       {"nothing repairs, shows or deletes them"},
		"apiserver: {hostNetwork: true}": {"kubectl label namespace etcd-operator-system --overwrite pod-security.kubernetes.io/enforce=privileged"},
	} {
		text := noteText(t, defaults(operator, values))
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("with %q the notes lack %q:\n%s", values, part, text)
			}
		}
	}
}

// TestUninstallJob: the policies allow the Job to reach the kube-apiserver, and no other
// object of the chart takes the pod of the Job for one of its own.
func TestUninstallJob(t *testing.T) {
	t.Parallel()
	list := defaults(operator, merged(t, several, "{controller: {replicas: 2}, networkPolicy: {enabled: true, apiserverEgress: [{ports: [{port: 2379}]}]}}")).render(t)
	labels, _ := list.field(uninstall, "spec.template.metadata.labels").(map[string]any)
	names, _ := list.field("NetworkPolicy/"+namespace+"/dns-and-kube-apiserver", "spec.podSelector.matchExpressions.0.values").([]any)
	if !slices.Contains(names, labels["app.kubernetes.io/name"]) {
		t.Errorf("the policies cut the Job off from the kube-apiserver: its labels are %v", labels)
	}
	for key, path := range map[string]string{
		apiServer:   "spec.selector.matchLabels",
		controller:  "spec.selector.matchLabels",
		budget:      "spec.selector.matchLabels",
		controllers: "spec.selector.matchLabels",
		"Service/" + namespace + "/etcd-operator-apiserver": "spec.selector",
	} {
		selector, _ := list.field(key, path).(map[string]any)
		others := 0
		for name, value := range selector {
			if labels[name] != value {
				others++
			}
		}
		if others == 0 {
			t.Errorf("%s selects the pod of the Job with %v", key, selector)
		}
	}
}

// TestDocumentedValues: the page about high availability shows the values that TestInstallation
// compares with artifacts/ha.
func TestDocumentedValues(t *testing.T) {
	t.Parallel()
	_, block, found := strings.Cut(read(t, "docs", "how-to", "high-availability.md"), "# ha.yaml\n")
	block, _, _ = strings.Cut(block, "```")
	want := parse(t, read(t, "charts", operator, "ci", "ha-values.yaml"))
	if diff := cmp.Diff(want, parse(t, block)); !found || diff != "" {
		t.Errorf("values of docs/how-to/high-availability.md (- ci/ha-values.yaml, + page):\n%s", diff)
	}
}
