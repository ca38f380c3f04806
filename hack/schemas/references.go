// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// reference is a field with the name of another object, as the configurations of kustomize have it.
type reference struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
}

// references returns the fields of all kinds that name another object, by the kind of that object. With them kustomize
// changes a name there too, for example if it adds a hash or a prefix.
func (all schemas) references() object {
	fields := map[string][]reference{}
	for kind := range kinds {
		inlined, _ := all.inlined(all.kind(kind)).(object)
		properties, _ := inlined["properties"].(object)
		visit("spec", properties["spec"], func(path string, named string) {
			fields[named] = append(fields[named], reference{Kind: kind, Path: path})
		})
	}
	list := []object{}
	for _, named := range slices.Sorted(maps.Keys(fields)) {
		slices.SortFunc(fields[named], func(a, b reference) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Path, b.Path))
		})
		entry := object{"kind": named, "fieldSpecs": fields[named]}
		if kinds[named] != "" {
			entry["group"] = v1beta2.SchemeGroupVersion.Group
		}
		list = append(list, entry)
	}
	return object{"nameReference": list}
}

// visit calls found for each field below a schema that names an object, with the kind of that object. It recognizes the
// fields by their names, as the API server does when it asks for the right to use a Secret.
func visit(path string, schema any, found func(path, named string)) {
	s, _ := schema.(object)
	if items, isList := s["items"]; isList {
		visit(path, items, found)
	}
	properties, _ := s["properties"].(object)
	for name, part := range properties {
		at := path + "/" + name
		p, _ := part.(object)
		switch {
		case p["type"] == "string" && strings.HasSuffix(strings.ToLower(name), "secret"):
			found(at, "Secret")
		case name == "secretKeyRef", name == "imagePullSecrets":
			found(at+"/name", "Secret")
		case name == "configMapKeyRef":
			found(at+"/name", "ConfigMap")
		case name == "serviceAccountName":
			found(at, "ServiceAccount")
		case name == "claimName":
			found(at, "PersistentVolumeClaim")
		case name == "etcdCluster":
			found(at+"/name", "EtcdCluster")
		case name == "backup" && refersToBackup(p):
			found(at+"/name", "EtcdBackup")
		default:
			visit(at, part, found)
		}
	}
}

// refersToBackup is true for a schema with the name of an EtcdBackup and a revision, and false for a policy of backups.
func refersToBackup(schema object) bool {
	properties, _ := schema["properties"].(object)
	return properties["name"] != nil && properties["revision"] != nil
}
