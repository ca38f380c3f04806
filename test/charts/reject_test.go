// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// TestRejectedValues: a wrong value is rejected with a message that names the value.
func TestRejectedValues(t *testing.T) {
	t.Parallel()
	for chart, cases := range map[string]map[string]string{
		operator: {
			"image: {tags: v1}":                                  "/image': additional properties 'tags'",
			"replicas: 2":                                        "additional properties 'replicas'",
			"image: {digest: latest}":                            "/image/digest",
			"imagePullSecrets: [pull]":                           "/imagePullSecrets/0",
			"commonLabels: {app.kubernetes.io/name: mine}":       "/commonLabels/app.kubernetes.io~1name",
			"apiserver: {replicas: 0}":                           "/apiserver/replicas",
			"apiserver: {replicas: two}":                         "/apiserver/replicas",
			"apiserver: {replicas: 2}":                           "apiserver.replicas is 2 and apiserver.storage.type is embedded",
			"apiserver: {storage: {type: memory}}":               "/apiserver/storage/type",
			"apiserver: {storage: {type: external}}":             "apiserver.storage.external.servers is empty",
			"apiserver: {storage: {external: {servers: [a]}}}":   "/apiserver/storage/external/servers/0",
			"apiserver: {storage: {embedded: {size: 2 Gi}}}":     "/apiserver/storage/embedded/size",
			"apiserver: {port: 70000}":                           "/apiserver/port",
			"apiserver: {hostNetwork: 'no'}":                     "/apiserver/hostNetwork",
			"apiserver: {servingCertificate: {secretName: a}}":   "nothing writes the CA of that certificate into the APIService",
			"apiserver: {extraArgs: ['v=4']}":                    "/apiserver/extraArgs/0",
			"apiserver: {extraEnv: [{value: a}]}":                "/apiserver/extraEnv/0': missing property 'name'",
			"apiserver: {resources: {limit: {}}}":                "/apiserver/resources': additional properties 'limit'",
			"controller: {watchNamespace: a, clusterWide: true}": "controller.watchNamespace and controller.clusterWide are both set",
			"controller: {watchNamespace: ns}":                   "apiserver.storage.embedded.backup.enabled is true: no controller would make the backups",
			"controller: {watchNamespace: 'A B'}":                "/controller/watchNamespace",
			"controller: {maxConcurrentBackups: 0}":              "/controller/maxConcurrentBackups",
			"prometheusRule: {enabled: true, disabled: [None]}":  "prometheusRule.disabled names the alert None",
			"prometheusRule: {runbookBase: wiki}":                "/prometheusRule/runbookBase",
			"{networkPolicy: {enabled: true}, apiserver: {storage: {type: external, external: {servers: ['https://a']}}}}": "networkPolicy.apiserverEgress is empty",
		},
		cluster: {
			"size: 8":                                        "/size",
			"size: '3'":                                      "/size",
			"{size: 0, storage: {size: ''}}":                 "size is 0 and storage.size is empty",
			"version: latest":                                "/version",
			"storage: {whenDeleted: Keep}":                   "/storage/whenDeleted",
			"tls: {auto: {}, static: {}}":                    "/tls",
			"tls: {manual: {}}":                              "/tls': additional properties 'manual'",
			"clients: [{commonName: a}]":                     "/clients/0': missing property 'name'",
			"clients: [{name: a, user: b}]":                  "/clients/0': additional properties 'user'",
			"spec: {clients: []}":                            "/spec",
			"backup: {schedule: '0 1 * * *'}":                "backup.storageType is empty",
			"backup: {volume: {size: 5 Gi}}":                 "/backup/volume/size",
			"backup: {volume: {size: 5Gi}, storageType: S3}": "backup.volume.size is set and backup.storageType is S3",
			"backup: {volume: {size: 5Gi}, persistentVolumeClaim: {claimName: a}}": "backup.volume.size and backup.persistentVolumeClaim.claimName are set",
			"backup: {storageType: FTP}":                      "/backup/storageType",
			"backup: {storageType: S3, retention: {days: 3}}": "/backup/retention': additional properties 'days'",
			"spec: {size: 5}":                                 "/spec/size",
			"networkPolicy: {clients: [{}]}":                  "/networkPolicy/clients/0",
			"nodes: 3":                                        "additional properties 'nodes'",
		},
	} {
		for values, want := range cases {
			t.Run(chart+" "+values, func(t *testing.T) {
				t.Parallel()
				_, err := defaults(chart, values).files(t)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
			})
		}
	}
}

// definitions is a Kubernetes cluster with custom resource definitions.
type definitions struct{ client dynamic.Interface }

func (d definitions) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gvr, _ := meta(schema.FromAPIVersionAndKind(apiVersion, kind))
	return d.client.Resource(gvr), false, nil
}

func meta(gvk schema.GroupVersionKind) (schema.GroupVersionResource, string) {
	return gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"), gvk.Kind + "List"
}

// withDefinitions has the custom resource definitions of groups: plural.group.
func withDefinitions(names ...string) engine.ClientProvider {
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	var found []runtime.Object
	for _, name := range names {
		_, group, _ := strings.Cut(name, ".")
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": group}}}
		object.SetGroupVersionKind(gvk)
		object.SetName(name)
		found = append(found, object)
	}
	gvr, list := meta(gvk)
	return definitions{fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gvr: list}, found...)}
}

// TestRejectedDefinitions: the chart is not installed beside custom resource definitions of
// the same group.
func TestRejectedDefinitions(t *testing.T) {
	t.Parallel()
	r := defaults(operator, "")
	r.lookup = withDefinitions("certificates.cert-manager.io")
	if _, err := r.files(t); err != nil {
		t.Errorf("with definitions of another group: %v", err)
	}
	r.lookup = withDefinitions("certificates.cert-manager.io", "etcdclusters.etcd.database.coreos.com", "etcdbackups.etcd.database.coreos.com")
	_, err := r.files(t)
	if err == nil {
		t.Fatal("the chart is installed beside custom resource definitions of its group")
	}
	for _, part := range []string{
		"exist: etcdbackups.etcd.database.coreos.com, etcdclusters.etcd.database.coreos.com.", // fact
		"garbage collection can delete pods",                                                  // cause
		"kubectl etcd migrate operator, which also deletes",                                   // remedy
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
}
