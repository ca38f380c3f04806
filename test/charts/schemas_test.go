// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// generated returns a directory with what a release has for tools that check or change manifests.
func generated(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err, "find the directory of the test")
	generate := exec.CommandContext(t.Context(), "go", "run", "./hack/schemas", dir)
	generate.Dir = root
	output, err := generate.CombinedOutput()
	must(t, err, "generate the schemas: %s", output)
	return filepath.Join(dir, "etcd.database.coreos.com")
}

// schemasOfRelease returns the JSON schemas that a release has, by kind.
func schemasOfRelease(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	dir, err := generated(t), error(nil)
	schemas := map[string]*jsonschema.Schema{}
	for _, kind := range []string{"EtcdCluster", "EtcdBackup", "EtcdRestore"} {
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		schemas[kind], err = compiler.Compile(filepath.Join(dir, strings.ToLower(kind)+"_v1beta2.json"))
		must(t, err, "compile the schema of %s", kind)
	}
	return schemas
}

// TestSchemas: the JSON schemas accept every example, and reject a field that is misspelt or has another type.
func TestSchemas(t *testing.T) {
	t.Parallel()
	schemas := schemasOfRelease(t)
	validate := func(text string) (known bool, err error) {
		var object map[string]any
		must(t, yaml.Unmarshal([]byte(text), &object), "parse %s", text)
		kind, _ := object["kind"].(string)
		if schemas[kind] == nil {
			return false, nil
		}
		return true, schemas[kind].Validate(object)
	}
	seen := 0
	must(t, filepath.WalkDir(filepath.Join(root, "artifacts", "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		for _, document := range strings.Split(read(t, strings.TrimPrefix(path, root+"/")), "\n---\n") {
			known, err := validate(document)
			if known {
				seen++
			}
			if err != nil && !strings.Contains(path, "unquoted") { // the version there is a number, which only old clients accept
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	}), "walk the examples")
	if seen < 10 {
		t.Errorf("only %d examples were looked at", seen)
	}
	const begin = "{apiVersion: etcd.database.coreos.com/v1beta2, metadata: {name: a}, "
	for text, wrong := range map[string]bool{
		"kind: EtcdCluster, spec: {size: 3}}":                                       false,
		"kind: EtcdCluster, spec: {sise: 3}}":                                       true,
		"kind: EtcdCluster, spec: {size: '3'}}":                                     true,
		"kind: EtcdCluster, spec: {pod: {resources: {requests: {cpu: 1}}}}}":        false,
		"kind: EtcdCluster, spec: {pod: {resources: {requests: {cpu: 500m}}}}}":     false,
		"kind: EtcdCluster, spec: {pod: {resources: {request: {cpu: 500m}}}}}":      true,
		"kind: EtcdBackup, spec: {storageType: S3, s3: {path: a/b, awsSecret: c}}}": false,
		"kind: EtcdBackup, spec: {storageType: S3, s3: {paht: a/b}}}":               true,
	} {
		if _, err := validate(begin + text); (err != nil) != wrong {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestReferences: kustomize changes the names of other objects in the three kinds as it changes these objects.
func TestReferences(t *testing.T) {
	t.Parallel()
	dir := generated(t)
	for name, text := range map[string]string{
		"kustomization.yaml": `
namePrefix: x-
configurations: [kustomize-references.yaml]
resources: [objects.yaml]
generatorOptions: {disableNameSuffixHash: true}
secretGenerator: [{name: keys, literals: [a=b]}]
configMapGenerator: [{name: settings, literals: [a=b]}]
`,
		"objects.yaml": `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: volume}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: db}
spec:
  size: 3
  pod:
    imagePullSecrets: [{name: keys}]
    etcdEnv: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}, {name: B, valueFrom: {secretKeyRef: {name: keys, key: a}}}]
  backup: {storageType: S3, s3: {path: a/b, awsSecret: keys}}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata: {name: db}
spec: {etcdCluster: {name: db}, storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: volume}}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: daily}
spec: {etcdCluster: {name: db}, storageType: S3, s3: {path: a/b}}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata: {name: old}
spec: {etcdCluster: {name: db}, backup: {name: daily}}
`,
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600), "write %s", name)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	must(t, err, "build the kustomization")
	text, err := built.AsYaml()
	must(t, err, "write what was built")
	found := objects{}
	found.add(t, "built", string(text))
	for field, want := range map[string]string{
		"EtcdCluster//x-db spec.pod.imagePullSecrets.0.name":                  "x-keys",
		"EtcdCluster//x-db spec.pod.etcdEnv.0.valueFrom.configMapKeyRef.name": "x-settings",
		"EtcdCluster//x-db spec.pod.etcdEnv.1.valueFrom.secretKeyRef.name":    "x-keys",
		"EtcdCluster//x-db spec.backup.s3.awsSecret":                          "x-keys",
		"EtcdRestore//x-db spec.etcdCluster.name":                             "x-db",
		"EtcdRestore//x-db spec.persistentVolumeClaim.claimName":              "x-volume",
		"EtcdRestore//x-old spec.backup.name":                                 "x-daily",
	} {
		object, path, _ := strings.Cut(field, " ")
		if got := found.field(object, path); got != want {
			t.Errorf("%s: %v, want %s", field, got, want)
		}
	}
}
