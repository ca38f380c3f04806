// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// schemasOfRelease returns the JSON schemas that a release has, by kind.
func schemasOfRelease(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	dir := t.TempDir()
	generate := exec.CommandContext(t.Context(), "go", "run", "./hack/schemas", dir)
	generate.Dir = root
	output, err := generate.CombinedOutput()
	must(t, err, "generate the schemas: %s", output)
	schemas := map[string]*jsonschema.Schema{}
	for _, kind := range []string{"EtcdCluster", "EtcdBackup", "EtcdRestore"} {
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		schemas[kind], err = compiler.Compile(filepath.Join(dir, "etcd.database.coreos.com", strings.ToLower(kind)+"_v1beta2.json"))
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
