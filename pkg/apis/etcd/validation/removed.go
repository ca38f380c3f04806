// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// originalFields are the fields of an EtcdCluster in the types of 2018, by the path of their
// parent. This table never grows: each field that is not in it is unknown to those types.
var originalFields = map[string]sets.Set[string]{
	"spec": sets.New("size", "repository", "version", "paused", "pod", "TLS"),
	"spec.pod": sets.New("labels", "nodeSelector", "affinity", "antiAffinity", "resources", "tolerations", "etcdEnv",
		"persistentVolumeClaimSpec", "annotations", "busyboxImage", "securityContext", "DNSTimeoutInSecond", "ClusterDomain"),
	"spec.TLS": sets.New("static"),
}

// RemovedFromEtcdCluster warns of an update that looks as if a client of the original types had sent
// it. Then the stored object has fields that those types lack, and the new object has none of them. Such a
// client reads an object, drops what it does not know, and writes back the rest.
func RemovedFromEtcdCluster(newCluster, oldCluster *v1beta2.EtcdCluster) []string {
	if len(laterFields(&newCluster.Spec)) > 0 {
		return nil
	}
	removed := laterFields(&oldCluster.Spec)
	if len(removed) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: this update removed what the stored object had; clients with the original types of EtcdCluster drop fields that they do not know. "+
		"Set the fields again, and have such a client send a patch instead of the whole object", strings.Join(removed, ", "))}
}

// laterFields returns the paths of the fields of spec that the original types lack, sorted. Fields
// that have their default, which every object gets, and deletionProtection, which an update without it
// keeps, are not among them.
func laterFields(spec *v1beta2.ClusterSpec) []string {
	defaults := v1beta2.ClusterSpec{}
	v1beta2.SetDefaults_ClusterSpec(&defaults)
	spec = spec.DeepCopy()
	spec.DeletionProtection = nil
	if spec.PodDisruptionBudget == defaults.PodDisruptionBudget {
		spec.PodDisruptionBudget = ""
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil // a warning is not worth an error
	}
	return laterFieldsIn(content, "spec")
}

func laterFieldsIn(content map[string]any, path string) []string {
	var later []string
	for _, name := range slices.Sorted(maps.Keys(content)) {
		at := path + "." + name
		if !originalFields[path].Has(name) {
			later = append(later, at)
		} else if nested, ok := content[name].(map[string]any); ok && originalFields[at] != nil {
			later = append(later, laterFieldsIn(nested, at)...)
		}
	}
	return later
}
