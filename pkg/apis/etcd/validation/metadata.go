// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// maxObjectLabels is how many labels every object of a cluster may get.
const maxObjectLabels = 32

// reservedDomains are those of labels that Kubernetes, the controller, or a tool that prunes acts on.
var reservedDomains = []string{v1beta2.SchemeGroupVersion.Group, "kubernetes.io", "k8s.io", "argoproj.io", "fluxcd.io", "helm.sh"}

// pruned are labels of app.kubernetes.io by which Argo CD or Helm takes an object for its own. PVCs, Secrets of the CA and
// the record have no owner, so that such a tool would delete them as what no manifest has.
var pruned = sets.New("app.kubernetes.io/instance", "app.kubernetes.io/managed-by")

// validateObjectsMetadata checks what is put on every object. Each label has one value, and no label makes another
// program act on objects that the user may have no right to change.
func validateObjectsMetadata(spec *v1beta2.ClusterSpec, path *field.Path) field.ErrorList {
	if spec.Metadata == nil {
		return nil
	}
	labels, path := spec.Metadata.Labels, path.Child("metadata", "labels")
	errs := validateOwnedLabels(labels, path)
	if len(labels) > maxObjectLabels {
		errs = append(errs, field.TooMany(path, len(labels), maxObjectLabels))
	}
	elsewhere := map[string]map[string]string{}
	if spec.Pod != nil {
		elsewhere["spec.pod.labels"] = spec.Pod.Labels
	}
	if services := spec.Services; services != nil && services.Client != nil {
		elsewhere["spec.services.client.labels"] = services.Client.Labels
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if isReserved(key) {
			errs = append(errs, forbidden(path.Key(key), "keys of %s are reserved; choose a key of another domain, or of app.kubernetes.io", strings.Join(reservedDomains, ", ")))
		}
		if pruned.Has(key) {
			errs = append(errs, forbidden(path.Key(key), "Argo CD and Helm take objects with this key for their own, and would delete the PVCs and the CA of the cluster; leave it out"))
		}
		for _, other := range slices.Sorted(maps.Keys(elsewhere)) {
			if _, found := elsewhere[other][key]; found {
				errs = append(errs, forbidden(path.Key(key), "%s has this key, too; keep one of the two", other))
			}
		}
	}
	return errs
}

// isReserved is true for a label of a reserved domain or of one below it.
func isReserved(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && domain != "app.kubernetes.io" && slices.ContainsFunc(reservedDomains, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}
