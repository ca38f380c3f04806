// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command schemas writes what tools that know no aggregated API need to check manifests: a JSON schema (draft 2020-12)
// of each kind, for editors and kubeconform. The same as custom resource definitions is for generators of code such as
// crd2pulumi. Kubernetes rejects these definitions, because they have no scope: with both, it would serve the group twice.
// The fields that name other objects are for kustomize.
// It imports the generated OpenAPI definitions. Start at run.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	readable = 0o644
	dialect  = "https://json-schema.org/draft/2020-12/schema"
	warning  = "# For tools that generate code or check manifests. Do not apply it: the API server of etcd-operator serves the group, and Kubernetes rejects a definition without a scope.\n"
)

// kinds are those that users write, and the names of their resources.
var kinds = map[string]string{"EtcdCluster": "etcdclusters", "EtcdBackup": "etcdbackups", "EtcdRestore": "etcdrestores"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("name the directory to write to")
	}
	all, err := load()
	if err != nil {
		return err
	}
	group, version := v1beta2.SchemeGroupVersion.Group, v1beta2.SchemeGroupVersion.Version
	directory := filepath.Join(args[0], group)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	for kind, plural := range kinds {
		schema, err := json.MarshalIndent(all.standalone(kind), "", "  ")
		if err != nil {
			return fmt.Errorf("write the schema of %s: %w", kind, err)
		}
		definition, err := yaml.Marshal(all.definition(kind, plural))
		if err != nil {
			return fmt.Errorf("write the definition of %s: %w", kind, err)
		}
		for name, content := range map[string][]byte{
			strings.ToLower(kind) + "_" + version + ".json": append(schema, '\n'),
			plural + ".crd.yaml":                            append([]byte(warning), definition...),
		} {
			if err := os.WriteFile(filepath.Join(directory, name), content, readable); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
		}
	}
	references, err := yaml.Marshal(all.references())
	if err != nil {
		return fmt.Errorf("write the references: %w", err)
	}
	if err := os.WriteFile(filepath.Join(directory, "kustomize-references.yaml"), references, readable); err != nil {
		return fmt.Errorf("write the references: %w", err)
	}
	return nil
}
