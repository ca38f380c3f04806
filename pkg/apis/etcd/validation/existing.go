// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// maxExistingEndpoints is more than an etcd has members.
const maxExistingEndpoints = 16

func existingOf(spec *v1beta2.ClusterSpec) *v1beta2.ExistingEtcd {
	if spec.Bootstrap == nil {
		return nil
	}
	return spec.Bootstrap.Existing
}

// validateBootstrap checks how a cluster begins.
func validateBootstrap(spec *v1beta2.ClusterSpec, path *field.Path) field.ErrorList {
	if spec.Bootstrap == nil {
		return nil
	}
	path = path.Child("bootstrap")
	existing := existingOf(spec)
	switch {
	case spec.Bootstrap.FromVolumes != nil && existing != nil:
		return field.ErrorList{forbidden(path.Child("fromVolumes"), "may not be set together with existing, because a cluster begins with the data of one etcd; remove one of the two")}
	case spec.Bootstrap.FromVolumes != nil && (spec.Pod == nil || spec.Pod.PersistentVolumeClaimSpec == nil):
		return field.ErrorList{field.Required(field.NewPath("spec", "pod", "persistentVolumeClaimSpec"), "must be set together with bootstrap.fromVolumes, because without it members have no volumes")}
	case spec.Bootstrap.FromVolumes != nil:
		return nil
	case existing == nil:
		return field.ErrorList{field.Required(path.Child("existing"), "name the running etcd that the members join, or take PVCs back with fromVolumes: {}, or remove bootstrap")}
	}
	path = path.Child("existing")
	errs := validateExistingEndpoints(existing, path)
	errs = append(errs, validateObjectName(existing.TLSSecret, path.Child("tlsSecret"))...)
	errs = append(errs, validateEnum(existing.OldMembers, path.Child("oldMembers"), v1beta2.OldMembersKeep, v1beta2.OldMembersRemove)...)
	if spec.Replicas != nil && *spec.Replicas == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "size"), *spec.Replicas,
			"must be at least 1 together with bootstrap.existing, because the members of this cluster are part of the quorum of the running etcd; remove the old members and bootstrap first"))
	}
	return append(errs, validateExistingTLS(spec, existing, path)...)
}

func validateExistingEndpoints(existing *v1beta2.ExistingEtcd, path *field.Path) field.ErrorList {
	path = path.Child("clientEndpoints")
	if len(existing.ClientEndpoints) == 0 {
		return field.ErrorList{field.Required(path, "name the client URLs of the members of the running etcd")}
	}
	if len(existing.ClientEndpoints) > maxExistingEndpoints {
		return field.ErrorList{field.TooMany(path, len(existing.ClientEndpoints), maxExistingEndpoints)}
	}
	var errs field.ErrorList
	for i, endpoint := range existing.ClientEndpoints {
		errs = append(errs, validateEndpoint(endpoint, path.Index(i), endpointRules{portRequired: true, example: "http://etcd-0.etcd.default.svc:2379"})...)
		switch {
		case slices.Contains(existing.ClientEndpoints[:i], endpoint):
			errs = append(errs, field.Duplicate(path.Index(i), echo(endpoint)))
		case isHTTPS(endpoint) != isHTTPS(existing.ClientEndpoints[0]):
			errs = append(errs, invalid(path.Index(i), endpoint, "must have the same scheme as the other endpoints: etcd speaks http or https to its clients"))
		}
	}
	return errs
}

func isHTTPS(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }

// validateExistingTLS rejects certificates by which old and new members would not trust each other.
func validateExistingTLS(spec *v1beta2.ClusterSpec, existing *v1beta2.ExistingEtcd, path *field.Path) field.ErrorList {
	secure := len(existing.ClientEndpoints) > 0 && isHTTPS(existing.ClientEndpoints[0])
	tls := field.NewPath("spec", "TLS")
	switch {
	case !secure && existing.TLSSecret != "":
		return field.ErrorList{forbidden(path.Child("tlsSecret"), "may not be set for http endpoints; remove it, or write https endpoints")}
	case !secure && channelsOf(spec.TLS).source != "":
		return field.ErrorList{forbidden(tls, "may not be set together with http endpoints in bootstrap.existing, because members that speak HTTPS and members that speak HTTP do not reach each other; remove TLS")}
	case !secure:
		return nil
	}
	var errs field.ErrorList
	if existing.TLSSecret == "" {
		errs = append(errs, field.Required(path.Child("tlsSecret"), "name the Secret with a client certificate that the running etcd accepts"))
	}
	if channelsOf(spec.TLS).source != "static" {
		errs = append(errs, field.Required(tls.Child("static"),
			"must be set together with https endpoints in bootstrap.existing: only certificates of the CA of the running etcd are trusted by its members"))
	}
	return errs
}

// validateBootstrapChange keeps what a cluster begins with. Before the status says that it has begun, no member joins a running
// etcd. So the endpoints and the Secret may be corrected, PVCs may be taken back, and the whole may be removed. After that the
// whole may be removed when no old member is left.
func validateBootstrapChange(newCluster, oldCluster *v1beta2.EtcdCluster, path *field.Path) field.ErrorList {
	now, before := existingOf(&newCluster.Spec), existingOf(&oldCluster.Spec)
	status := &oldCluster.Status
	hasBegun := status.Phase != v1beta2.ClusterPhaseNone && status.Phase != v1beta2.ClusterPhaseCreating
	if hasBegun && newCluster.TakesVolumesBack() && !oldCluster.TakesVolumesBack() {
		return field.ErrorList{forbidden(path.Child("bootstrap", "fromVolumes"), "may not be added to a cluster that has begun, because it has data of its own; make a new EtcdCluster")}
	}
	path = path.Child("bootstrap", "existing")
	hasOldMembers := slices.ContainsFunc(status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Unmanaged })
	switch {
	case before == nil && now == nil:
		return nil
	case before == nil:
		return field.ErrorList{forbidden(path, "may not be added to a cluster that exists, because the cluster has begun with data of its own; make a new EtcdCluster")}
	case now == nil && hasBegun && (hasOldMembers || len(status.MemberStatuses) == 0):
		return field.ErrorList{forbidden(path, "may not be removed while members of the running etcd may be left; set oldMembers to Remove and wait until status.memberStatuses has no unmanaged member")}
	case now == nil:
		return nil
	}
	var errs field.ErrorList
	if hasBegun && !equality.Semantic.DeepEqual(now.ClientEndpoints, before.ClientEndpoints) {
		errs = append(errs, forbidden(path.Child("clientEndpoints"), "may not change after members began to join: the record of the cluster names that etcd; make a new EtcdCluster for another etcd"))
	}
	if hasBegun && now.TLSSecret != before.TLSSecret {
		errs = append(errs, forbidden(path.Child("tlsSecret"), "may not change after members began to join; change the content of Secret %q instead", before.TLSSecret))
	}
	if before.OldMembers == v1beta2.OldMembersRemove && now.OldMembers != v1beta2.OldMembersRemove && hasBegun && !hasOldMembers {
		errs = append(errs, forbidden(path.Child("oldMembers"), "may not go back: the old members were removed"))
	}
	return errs
}
