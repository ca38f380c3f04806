// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/openapi"
)

// crdGroup is the group in which the CRD serves EtcdClusters.
const crdGroup = "etcd.bench.example.com"

// crdSchema returns the schema with defaults and rules.
func crdSchema() (object, error) {
	schema, err := structuralSchema(openapi.GetOpenAPIDefinitions, v1beta2.EtcdCluster{}.OpenAPIModelName())
	if err != nil {
		return nil, err
	}
	for _, overlays := range [][]overlay{defaults(), fieldRules(), celRules()} {
		if err := apply(schema, overlays); err != nil {
			return nil, err
		}
	}
	return schema, nil
}

// crdManifest returns the CRD as JSON.
func crdManifest() ([]byte, error) {
	schema, err := crdSchema()
	if err != nil {
		return nil, err
	}
	column := func(name, kind, path string) object { return object{"name": name, "type": kind, "jsonPath": path} }
	return json.Marshal(object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   object{"name": "etcdclusters." + crdGroup},
		"spec": object{
			"group": crdGroup,
			"scope": "Namespaced",
			"names": object{"plural": "etcdclusters", "singular": "etcdcluster", "kind": "EtcdCluster", "listKind": "EtcdClusterList"},
			"versions": []any{object{
				"name": v1beta2.SchemeGroupVersion.Version, "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": schema},
				"subresources": object{
					"status": object{},
					"scale": object{
						"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector",
					},
				},
				// The columns of pkg/registry/etcd/cluster/table.go that are one field each.
				"additionalPrinterColumns": []any{
					column("Size", "integer", ".spec.size"),
					column("Ready", "string", ".status.members.ready"),
					column("Tolerance", "integer", ".status.tolerance"),
					column("Leader", "string", ".status.leader"),
					column("Version", "string", ".status.currentVersion"),
					column("DB", "integer", ".status.dbSize"),
					column("Last-Backup", "date", ".status.lastBackup.time"),
					column("Phase", "string", ".status.phase"),
					column("Age", "date", ".metadata.creationTimestamp"),
					column("Service", "string", ".status.serviceName"),
					column("Message", "string", ".status.blockedBy.message"),
				},
			}},
		},
	})
}
