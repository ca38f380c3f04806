// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// overlay adds to the schema of one field what the Go code of the API server says about it.
// Fields of a path are separated by dots; [] is the elements of a list, {} the values of a map.
type overlay struct {
	path string
	add  object
}

// rule is one rule of x-kubernetes-validations.
func rule(expression, message string) object {
	return object{"rule": expression, "message": message}
}

func rules(all ...object) object { return object{"x-kubernetes-validations": toAny(all)} }

// quantityOf is CEL for the quantity in a field that may be a number.
func quantityOf(field string) string { return "quantity(string(" + field + "))" }

// defaults are those of pkg/apis/etcd/v1beta2/defaults.go that do not depend on another field.
func defaults() []overlay {
	return []overlay{
		{"spec.repository", object{"default": v1beta2.DefaultRepository}},
		{"spec.version", object{"default": v1beta2.DefaultVersion}},
		{"spec.podDisruptionBudget", object{"default": string(v1beta2.PodDisruptionBudgetEnabled)}},
		{"spec.pod.persistentVolumeClaimRetentionPolicy.whenDeleted", object{"default": string(v1beta2.PVCDelete)}},
		{"spec.pod.persistentVolumeClaimRetentionPolicy.whenScaled", object{"default": string(v1beta2.PVCDelete)}},
		{"spec.recovery.quorumLoss", object{"default": string(v1beta2.RecoveryManual)}},
		{"spec.recovery.memberLoss", object{"default": string(v1beta2.RecoveryAutomatic)}},
		{"spec.TLS.certManager.issuerRef.kind", object{"default": "Issuer"}},
		{"spec.TLS.certManager.issuerRef.group", object{"default": "cert-manager.io"}},
		{"spec.backup.compression", object{"default": string(v1beta2.CompressionZstd)}},
	}
}

// fieldRules are the rules of pkg/apis/etcd/validation that the keywords of a schema can say.
func fieldRules() []overlay {
	enum := func(values ...string) object { return object{"enum": toAny(values)} }
	notNegative := object{"minimum": 0}
	return []overlay{
		{"spec", object{"required": []any{"size"}}},
		{"spec.size", object{"minimum": 0, "maximum": 7}},
		{"spec.repository", object{"minLength": 1, "maxLength": 255, "pattern": `^[A-Za-z0-9\[\]:._/-]+$`}},
		{"spec.version", object{"maxLength": 127, "pattern": `^v?3\.[1-9][0-9]*\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`}},
		{"spec.imageDigest", object{"maxLength": 71, "pattern": `^(sha256:[0-9a-f]{64})?$`}},
		{"spec.podDisruptionBudget", enum("Enabled", "Disabled")},
		{"spec.recovery.quorumLoss", enum("Manual", "Automatic")},
		{"spec.recovery.memberLoss", enum("Manual", "Automatic")},
		{"spec.recovery.memberLossTimeoutSeconds", object{"minimum": 60, "maximum": 1 << 31}},
		{"spec.etcd.snapshotCount", object{"minimum": 1}},
		{"spec.etcd.autoCompaction.mode", enum("Periodic", "Revision")},
		{"spec.pod.ClusterDomain", object{"maxLength": 254, "pattern": `^(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`}},
		{"spec.pod.terminationGracePeriodSeconds", object{"minimum": 0, "maximum": 1 << 31}},
		{"spec.pod.etcdEnv.[].name", object{"minLength": 1}},
		{"spec.pod.persistentVolumeClaimRetentionPolicy.whenDeleted", enum("Delete", "Retain")},
		{"spec.pod.persistentVolumeClaimRetentionPolicy.whenScaled", enum("Delete", "Retain")},
		{"spec.pod.persistentVolumeClaimSpec", object{"required": []any{"accessModes", "resources"}}},
		{"spec.pod.persistentVolumeClaimSpec.accessModes", object{"minItems": 1, "maxItems": 4}},
		{"status.phase", enum("", "Creating", "Running", "Failed", "Hibernated")},
		{"status.size", notNegative},
		{"status.clientPort", notNegative},
		{"status.observedGeneration", notNegative},
		{"status.dbSize", notNegative},
		{"status.conditions.[].type", object{"minLength": 1}},
		{"status.conditions.[].status", enum("True", "False", "Unknown")},
		{"status.memberStatuses.[].role", enum("", "Leader", "Follower", "Learner", "Pending")},
		{"status.memberStatuses.[].healthy", enum("", "True", "False", "Unknown")},
		{"status.memberStatuses.[].dbSize", notNegative},
		{"status.memberStatuses.[].raftLag", notNegative},
	}
}

// apply changes the schema.
func apply(schema object, overlays []overlay) error {
	for _, o := range overlays {
		at, err := schemaAt(schema, o.path)
		if err != nil {
			return err
		}
		for key, value := range o.add {
			if list, ok := value.([]any); ok && (key == "required" || key == "x-kubernetes-validations") {
				before, _ := at[key].([]any)
				value = append(before, list...)
			}
			at[key] = value
		}
	}
	return nil
}

// schemaAt returns the schema of a field.
func schemaAt(schema object, path string) (object, error) {
	at := schema
	if path == "" {
		return at, nil
	}
	for name := range strings.SplitSeq(path, ".") {
		var next object
		switch name {
		case "[]":
			next, _ = at["items"].(object)
		case "{}":
			next, _ = at["additionalProperties"].(object)
		default:
			properties, _ := at["properties"].(object)
			next, _ = properties[name].(object)
		}
		if next == nil {
			return nil, fmt.Errorf("%w: the type has no field %s; correct the path %s", errSchema, name, path)
		}
		at = next
	}
	return at, nil
}
