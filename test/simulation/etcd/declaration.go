// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DeafEnvironment is a variable with which etcd starts, votes and serves clients, and no
// controller reaches it. Flags such as --cipher-suites are like that.
const DeafEnvironment = "ETCD_OUT_OF_REACH"

// isDeaf is true for a container whose etcd no controller reaches.
func (e *World) isDeaf(r Container) bool {
	for _, p := range e.Processes {
		if p.Run.UID() == r.UID() {
			return p.deaf
		}
	}
	return false
}

// versionIn is the version of etcd in an image.
func (e *World) versionIn(image string) string {
	if version, lies := e.Mislabeled[image]; lies {
		return version
	}
	return versionOf(image)
}

// verifiesNames is true for an etcd that looks up the names of its peers in the DNS, which knows none here. The
// variable against that has another name before 3.6, and 3.7 does not know the old one.
func verifiesNames(pod *corev1.Pod, version string) bool {
	const suffix = "PEER_SKIP_CLIENT_SAN_VERIFICATION"
	m := minor(version)
	if m < 2 || !slices.Contains(command(pod), "--peer-client-cert-auth=true") {
		return false
	}
	known := map[string]bool{"ETCD_" + suffix: m >= 6, "ETCD_EXPERIMENTAL_" + suffix: m <= 6}
	for i := range pod.Spec.Containers {
		for _, v := range pod.Spec.Containers[i].Env {
			value := v.Value
			if v.ValueFrom != nil && v.ValueFrom.FieldRef != nil {
				name, _ := strings.CutPrefix(v.ValueFrom.FieldRef.FieldPath, "metadata.annotations['")
				value = pod.Annotations[strings.TrimSuffix(name, "']")]
			}
			if known[v.Name] && value == "true" {
				return false
			}
		}
	}
	return true
}
