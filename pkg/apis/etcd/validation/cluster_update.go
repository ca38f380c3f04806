// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ValidateEtcdClusterUpdate returns what is wrong with an update of oldCluster to
// newCluster. The size may change by any number: the controller takes the steps.
func ValidateEtcdClusterUpdate(newCluster, oldCluster *v1beta2.EtcdCluster) field.ErrorList {
	path := field.NewPath("spec")
	errs := apivalidation.ValidateObjectMetaUpdate(&newCluster.ObjectMeta, &oldCluster.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, ratchet(newCluster, oldCluster, validateCluster)...)
	errs = append(errs, validateVersionChange(newCluster.Spec.Version, oldCluster, path.Child("version"))...)
	errs = append(errs, validateDigestChange(&newCluster.Spec, &oldCluster.Spec, path.Child("imageDigest"))...)
	errs = append(errs, validateTLSChange(newCluster.Spec.TLS, oldCluster.Spec.TLS, path.Child("TLS"))...)
	errs = append(errs, validateBootstrapChange(newCluster, oldCluster, path)...)
	errs = append(errs, validateDomainChange(&newCluster.Spec, &oldCluster.Spec, path.Child("pod", "ClusterDomain"))...)
	return bounded(append(errs, validateVolumeChange(newCluster, oldCluster, path.Child("pod", "persistentVolumeClaimSpec"))...))
}

// validateVersionChange compares with what the members run, where that is known: it
// is the lowest version among them, so an upgrade that got stuck can be taken back.
func validateVersionChange(version string, oldCluster *v1beta2.EtcdCluster, path *field.Path) field.ErrorList {
	if version == oldCluster.Spec.Version {
		return nil
	}
	status := &oldCluster.Status
	if status.Phase == v1beta2.ClusterPhaseCreating && status.CurrentVersion == "" {
		return nil // No member has run yet: a version without an image must be correctable.
	}
	to, ok := parseVersion(version)
	from, known := parseVersion(status.CurrentVersion)
	if !known {
		from, known = parseVersion(oldCluster.Spec.Version)
	}
	if !ok || !known || to.Major() != from.Major() {
		return nil // That the version itself is wrong is reported elsewhere.
	}
	switch {
	case to.Minor() < from.Minor():
		return field.ErrorList{invalid(path, version,
			"must not be below %d.%d: etcd %s has written data that an older minor version may not read. To downgrade, restore a backup that the older version made into a new EtcdCluster",
			from.Major(), from.Minor(), from)}
	case to.Minor() > from.Minor()+1:
		return field.ErrorList{invalid(path, version,
			"must not skip a minor version: the members run %s; upgrade to %d.%d first and wait until it is done", from, from.Major(), from.Minor()+1)}
	case to.Minor() == from.Minor():
		return nil
	}
	if patch, bound := SafePatchOf(from.Minor()); bound && isBefore(from, patch) {
		return field.ErrorList{invalid(path, version,
			"must not be above %d.%d while the members run %s: %s; upgrade to %s or a later %d.%d first and wait until it is done",
			from.Major(), from.Minor(), from, patch.Because, patch.Version, from.Major(), from.Minor())}
	}
	return nil
}

// channels says which traffic of a cluster is encrypted, and what signs its certificates.
type channels struct {
	client, peer bool
	source       string
}

func channelsOf(tls *v1beta2.TLSPolicy) channels {
	switch {
	case tls == nil:
		return channels{}
	case tls.Auto != nil:
		return channels{client: true, peer: true, source: "auto"}
	case tls.CertManager != nil:
		return channels{client: true, peer: true, source: "certManager"}
	case tls.Static != nil:
		c := channels{client: tls.Static.OperatorSecret != "", source: "static"}
		if tls.Static.Member != nil {
			c.peer = tls.Static.Member.PeerSecret != ""
		}
		if c.client || c.peer {
			return c
		}
	}
	return channels{}
}

func validateTLSChange(newTLS, oldTLS *v1beta2.TLSPolicy, path *field.Path) field.ErrorList {
	now, before := channelsOf(newTLS), channelsOf(oldTLS)
	const wayOut = "make a new EtcdCluster and restore a backup of this EtcdCluster into it"
	switch {
	case now == before && now.source == "certManager" && newTLS.CertManager.IssuerRef != oldTLS.CertManager.IssuerRef:
		return field.ErrorList{forbidden(path.Child("certManager", "issuerRef"), "may not change, because members would not trust each other's certificates meanwhile: there is no moment at which they trust both issuers; %s", wayOut)}
	case now == before:
		return nil
	case now.client != before.client || now.peer != before.peer:
		return field.ErrorList{forbidden(path, "may not be switched on or off for a living cluster, because members that speak HTTP and members that speak HTTPS do not reach each other; %s", wayOut)}
	default:
		return field.ErrorList{forbidden(path, "may not change from %s to %s, because members would not trust each other's certificates meanwhile; %s", before.source, now.source, wayOut)}
	}
}

// validateDomainChange keeps the names by which members know each other.
func validateDomainChange(newSpec, oldSpec *v1beta2.ClusterSpec, path *field.Path) field.ErrorList {
	now, before := domainOf(newSpec), domainOf(oldSpec)
	if strings.TrimPrefix(now, ".") == strings.TrimPrefix(before, ".") {
		return nil
	}
	return field.ErrorList{forbidden(path, "may not change from %q to %q, because the members know each other by names that end in it; make a new EtcdCluster and restore a backup of this EtcdCluster into it", before, now)}
}

func domainOf(spec *v1beta2.ClusterSpec) string {
	if spec.Pod == nil {
		return ""
	}
	return spec.Pod.ClusterDomain
}

func pvcSpecOf(spec *v1beta2.ClusterSpec) *corev1.PersistentVolumeClaimSpec {
	if spec.Pod == nil {
		return nil
	}
	return spec.Pod.PersistentVolumeClaimSpec
}

// growthRejected is true while Kubernetes rejects the growth of volumes. Then the user may
// declare the old size again. A volume that has grown meanwhile keeps its size.
func growthRejected(c *v1beta2.EtcdCluster) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(cond v1beta2.ClusterCondition) bool {
		return cond.Type == v1beta2.ClusterConditionVolumesAsDeclared && cond.Status == corev1.ConditionFalse && cond.Reason == v1beta2.ReasonGrowthRejected
	})
}

func validateVolumeChange(newCluster, oldCluster *v1beta2.EtcdCluster, path *field.Path) field.ErrorList {
	now, before := pvcSpecOf(&newCluster.Spec), pvcSpecOf(&oldCluster.Spec)
	if now == nil && before == nil {
		return nil
	}
	if now == nil || before == nil {
		return field.ErrorList{forbidden(path, "may not be added or removed for a living cluster, because the members' data does not move; make a new EtcdCluster and restore a backup of this EtcdCluster into it")}
	}
	var errs field.ErrorList
	was, is := before.Resources.Requests[corev1.ResourceStorage], now.Resources.Requests[corev1.ResourceStorage]
	if hasExactValue(is) && hasExactValue(was) && is.Cmp(was) < 0 && !growthRejected(oldCluster) {
		errs = append(errs, invalid(path.Child("resources", "requests").Key(string(corev1.ResourceStorage)), is.String(),
			"must not be less than %s: volumes can grow but not shrink; make a new EtcdCluster and restore a backup of this EtcdCluster into it", was.String()))
	}
	for _, fixed := range []struct {
		name    string
		changed bool
	}{
		{"accessModes", !slices.Equal(now.AccessModes, before.AccessModes)},
		{"storageClassName", !equality.Semantic.DeepEqual(now.StorageClassName, before.StorageClassName)},
		{"volumeMode", modeOf(now) != modeOf(before)},
		{"volumeName", now.VolumeName != before.VolumeName},
		{"selector", !equality.Semantic.DeepEqual(now.Selector, before.Selector)},
		{"dataSource", !equality.Semantic.DeepEqual(now.DataSource, before.DataSource)},
		{"dataSourceRef", !equality.Semantic.DeepEqual(now.DataSourceRef, before.DataSourceRef)},
	} {
		if fixed.changed {
			errs = append(errs, forbidden(path.Child(fixed.name), "may not change, because the members' volumes exist; make a new EtcdCluster with another %s and restore a backup of this EtcdCluster into it", fixed.name))
		}
	}
	return errs
}

// modeOf treats an absent mode as the one that it means.
func modeOf(pvc *corev1.PersistentVolumeClaimSpec) corev1.PersistentVolumeMode {
	if pvc.VolumeMode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *pvc.VolumeMode
}
