// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// keptAnnotations are those with values of the operator and of Kubernetes. Any other annotation
// may hold a secret, such as kubectl.kubernetes.io/last-applied-configuration.
var keptAnnotations = map[string]bool{
	resources.AnnotationVersion: true, resources.AnnotationVersionBefore: true, resources.AnnotationImage: true, resources.AnnotationAdmittedImage: true, resources.AnnotationPutBack: true,
	resources.AnnotationInitialCluster: true, resources.AnnotationInitialState: true, resources.AnnotationTemplate: true,
	resources.AnnotationCancelOperation: true, resources.AnnotationSuperseded: true, resources.AnnotationClusterUID: true, resources.AnnotationClusterNamespace: true,
	resources.AnnotationImageRegistry: true, resources.AnnotationMembership: true, resources.AnnotationRetained: true,
	resources.AnnotationGrowthRejected: true, resources.AnnotationRecovery: true, resources.AnnotationRecoveries: true,
	resources.AnnotationRestart: true, resources.AnnotationRotateCA: true, resources.AnnotationDropOldCA: true, resources.AnnotationTrust: true,
	resources.AnnotationCAs: true, resources.AnnotationCertificates: true, resources.AnnotationBackup: true, resources.AnnotationScheduledTime: true,
	resources.AnnotationAttempt: true, resources.AnnotationPreRestoreBackup: true, resources.AnnotationSource: true,
	resources.AnnotationRestoreJob: true, resources.AnnotationRestoreAttempt: true, resources.AnnotationRestoreTarget: true,
	"deployment.kubernetes.io/revision": true, "pv.kubernetes.io/bind-completed": true, "pv.kubernetes.io/bound-by-controller": true,
	"volume.kubernetes.io/selected-node": true, "volume.kubernetes.io/storage-provisioner": true,
}

// hiddenFields hold secrets, encoded data, or options of drivers.
var hiddenFields = map[string]bool{
	"data": true, "stringData": true, "binaryData": true, "caBundle": true, "volumeAttributes": true, "options": true, "parameters": true,
}

var (
	// namedValues are lists of a name and a value, such as env, etcdEnv and httpHeaders.
	namedValues = regexp.MustCompile(`(?i)env$|headers$`)
	// secretField is in the name of a field that holds a secret. Fields such as awsSecret hold
	// the name of a Secret and stay.
	secretField = regexp.MustCompile(`(?i)passw(or)?d|passphrase|token|credential|authorization|cookie|private-?key|access-?key`)
	// secretFlag is an argument of a program whose next argument is a secret.
	secretFlag = regexp.MustCompile(`(?i)^--?[\w-]*` + secretWord + `[\w-]*$`)
)

// Object removes secrets from an object of the API, which it changes.
func Object(object map[string]any) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	redactMap(object)
}

func redactMap(fields map[string]any) {
	for name, content := range fields {
		switch {
		case name == "annotations":
			fields[name] = annotations(content)
		case hiddenFields[name]:
			fields[name] = hidden(content)
		default:
			fields[name] = redactField(name, content)
		}
	}
}

func redactField(name string, content any) any {
	switch content := content.(type) {
	case string:
		if secretField.MatchString(name) {
			return Mark
		}
		return Text(content)
	case map[string]any:
		redactMap(content)
	case []any:
		redactList(name, content)
	}
	return content
}

func redactList(name string, list []any) {
	afterFlag := false
	for i, item := range list {
		switch item := item.(type) {
		case string:
			list[i] = redactField(name, item)
			if afterFlag {
				list[i] = Mark
			}
			afterFlag = secretFlag.MatchString(item)
		case map[string]any:
			if _, ok := item["value"]; ok && namedValues.MatchString(name) {
				item["value"] = Mark
			}
			redactMap(item)
		case []any:
			redactList(name, item)
		}
	}
}

// annotations returns annotations with their keys, and with the values that are known to hold
// no secret.
func annotations(content any) any {
	all, ok := content.(map[string]any)
	if !ok {
		return hidden(content)
	}
	for key, content := range all {
		if s, ok := content.(string); ok && keptAnnotations[key] {
			all[key] = Text(s)
		} else {
			all[key] = Mark
		}
	}
	return all
}

// hidden removes every value and keeps the names of fields. A field that is not a map, such as
// dnsConfig.options, loses its content.
func hidden(content any) any {
	fields, ok := content.(map[string]any)
	if !ok {
		return Mark
	}
	for name := range fields {
		fields[name] = Mark
	}
	return fields
}
