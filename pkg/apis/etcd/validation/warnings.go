// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// supportedMinors lists the minor versions of etcd 3 that the etcd project makes patch
// releases of. Its last patch release of 3.4 was 3.4.45, of June 2026. A newer minor
// version than these is not warned about: it is more probable that this table is old.
var supportedMinors = []uint64{5, 6, 7}

// guardedSize is the number of members from which a cluster is taken for one that must
// not lose its data.
const guardedSize = 3

// recommendedQuota is the most that etcd's makers advise.
var recommendedQuota = resource.MustParse("8Gi")

// WarningsForEtcdCluster returns what the author of a cluster should know and may
// ignore.
func WarningsForEtcdCluster(cluster *v1beta2.EtcdCluster) []string {
	return clusterSpecWarnings(&cluster.Spec, field.NewPath("spec"))
}

func clusterSpecWarnings(spec *v1beta2.ClusterSpec, path *field.Path) []string {
	var warnings []string
	if size := spec.Replicas; size != nil && *size == 0 {
		warnings = append(warnings, fmt.Sprintf("%s: 0 stops all members, and clients have no etcd until it is raised; an autoscaler needs a minimum of 1 or more", path.Child("size")))
	}
	if size := spec.Replicas; size != nil && *size > 0 && *size%2 == 0 {
		warnings = append(warnings, fmt.Sprintf("%s: %d members tolerate no more failures than %d; choose an odd number", path.Child("size"), *size, *size-1))
	}
	if size := spec.Replicas; size != nil && *size >= guardedSize && !hasVolumes(spec) {
		warnings = append(warnings, fmt.Sprintf("%s: is not set, so a member loses its data with its pod, and the cluster is lost when most pods are deleted at once. "+
			"Set it when you create the cluster, because it cannot be added later", path.Child("pod", "persistentVolumeClaimSpec")))
	}
	warnings = append(warnings, versionWarnings(spec.Version, path.Child("version"))...)
	if spec.Pod != nil {
		warnings = append(warnings, podWarnings(spec.Pod, path.Child("pod"))...)
		warnings = append(warnings, tolerationWarnings(spec, path.Child("pod", "tolerations"))...)
	}
	if spec.TLS != nil && channelsOf(spec.TLS) == (channels{}) {
		warnings = append(warnings, fmt.Sprintf("%s: names no certificates, so members speak plain HTTP; set auto, certManager or static", path.Child("TLS")))
	}
	warnings = append(warnings, clientWarnings(spec, path.Child("clients"))...)
	if spec.Etcd != nil {
		warnings = append(warnings, optionWarnings(spec, path.Child("etcd"))...)
	}
	if policy, at := spec.Backup, path.Child("backup"); policy != nil {
		warnings = append(warnings, placeWarnings(backupPlace(policy.StorageType, &policy.BackupSource, at), at)...)
		warnings = append(warnings, proofWarnings(policy.Verify, policy.Encryption != nil, false, at)...)
		if policy.Schedule == "" && policy.TimeZone != nil {
			warnings = append(warnings, fmt.Sprintf("%s: has no effect without schedule", at.Child("timeZone")))
		}
		if policy.Schedule == "" && policy.Retention != nil {
			warnings = append(warnings, fmt.Sprintf("%s: has no effect without schedule", at.Child("retention")))
		}
	}
	return warnings
}

func versionWarnings(version string, path *field.Path) []string {
	parsed, ok := parseVersion(version)
	if !ok || parsed.Minor() >= slices.Min(supportedMinors) {
		return nil
	}
	return []string{fmt.Sprintf("%s: etcd %s has reached its end of life and gets no security fixes; use %s, one minor version at a time",
		path, echo(version), supportedVersions())}
}

// supportedVersions lists them for a reader: "3.5, 3.6 or 3.7".
func supportedVersions() string {
	names := make([]string, 0, len(supportedMinors))
	for _, minor := range supportedMinors {
		names = append(names, fmt.Sprintf("3.%d", minor))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func podWarnings(pod *v1beta2.PodPolicy, path *field.Path) []string {
	var warnings []string
	if pod.BusyboxImage != "" {
		warnings = append(warnings, fmt.Sprintf("%s: has no effect, because no container needs it", path.Child("busyboxImage")))
	}
	if pod.DNSTimeoutInSecond != 0 {
		warnings = append(warnings, fmt.Sprintf("%s: has no effect, because nothing waits for DNS", path.Child("DNSTimeoutInSecond")))
	}
	if pod.PersistentVolumeClaimSpec != nil {
		warnings = append(warnings, volumeWarnings(pod.PersistentVolumeClaimSpec, path.Child("persistentVolumeClaimSpec"))...)
	}
	if pod.AntiAffinity {
		warnings = append(warnings, fmt.Sprintf("%s: is deprecated; use affinity or topologySpreadConstraints", path.Child("antiAffinity")))
	}
	for i := range pod.EtcdEnv {
		if flag, found := envFlag(pod.EtcdEnv[i].Name); found && whyOwned(flag) != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %s", path.Child("etcdEnv").Index(i).Child("name"), envAdvice(flag)))
		}
	}
	return warnings
}

// tolerationWarnings names the tolerations that are left out of the pods, and what follows from them.
func tolerationWarnings(spec *v1beta2.ClusterSpec, path *field.Path) []string {
	var warnings []string
	for i := range spec.Pod.Tolerations {
		if v1beta2.LimitsStay(&spec.Pod.Tolerations[i]) {
			warnings = append(warnings, fmt.Sprintf("%s: is left out of the pods, because Kubernetes would delete members that serve behind a partition, with the writes that only they have. "+
				"The controller replaces a member that has not responded for %v, while the others are a quorum. "+
				"Set spec.recovery.memberLossTimeoutSeconds instead, and name the key of each other taint that members tolerate", path.Index(i), spec.MemberLossTimeout()))
		}
	}
	return warnings
}

// volumeWarnings names what a PVC has without effect.
func volumeWarnings(pvc *corev1.PersistentVolumeClaimSpec, path *field.Path) []string {
	var warnings []string
	if slices.Contains(pvc.AccessModes, corev1.ReadWriteMany) {
		warnings = append(warnings, fmt.Sprintf("%s: ReadWriteMany volumes are usually file shares of a network, on which etcd is slow and locks of its files may not hold; use ReadWriteOnce on block storage",
			path.Child("accessModes")))
	}
	if len(pvc.Resources.Limits) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: limits no volume, and PVCs that exist keep theirs, because Kubernetes reads the requests only; remove it", path.Child("resources", "limits")))
	}
	for _, name := range slices.Sorted(maps.Keys(pvc.Resources.Requests)) {
		if name != corev1.ResourceStorage {
			warnings = append(warnings, fmt.Sprintf("%s: has no effect, because a volume has only storage; remove it", path.Child("resources", "requests").Key(string(name))))
		}
	}
	return warnings
}

// envAdvice says what etcd does with a variable that stands for a flag: etcd prefers the
// command line, but reads what that leaves out.
func envAdvice(flag string) string {
	if typed, found := typedFlags[flag]; found {
		return fmt.Sprintf("set spec.etcd.%s instead, which is checked", typed)
	}
	return "has no effect or does harm, because the controller sets etcd's --" + echo(flag)
}

func optionWarnings(spec *v1beta2.ClusterSpec, path *field.Path) []string {
	var warnings []string
	for i, arg := range spec.Etcd.ExtraArgs {
		if name, ok := flagName(arg); ok && strings.HasPrefix(name, "unsafe-") {
			warnings = append(warnings, fmt.Sprintf("%s: --%s can lose acknowledged writes", path.Child("extraArgs").Index(i), echo(name)))
		}
	}
	quota := spec.Etcd.QuotaBackendBytes
	if quota == nil || !hasExactValue(*quota) {
		return warnings
	}
	at := path.Child("quotaBackendBytes")
	if quota.Cmp(recommendedQuota) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: more than 8Gi is more than etcd is tested with", at))
	}
	if pvc := pvcSpecOf(spec); pvc != nil {
		if storage, found := pvc.Resources.Requests[corev1.ResourceStorage]; found && hasExactValue(storage) && quota.Cmp(storage) >= 0 {
			warnings = append(warnings, fmt.Sprintf("%s: the volume of %s is full before the quota is reached; request more storage", at, storage.String()))
		}
	}
	return warnings
}

func placeWarnings(p place, path *field.Path) []string {
	var warnings []string
	if p.s3 != nil && p.s3.InsecureSkipTLSVerify {
		warnings = append(warnings, fmt.Sprintf("%s: anyone between here and the store can read and change the backup; name a caSecret instead", path.Child("s3", "insecureSkipTLSVerify")))
	}
	for name, endpoint := range p.endpoints() {
		if strings.HasPrefix(strings.ToLower(endpoint), "http://") {
			warnings = append(warnings, fmt.Sprintf("%s: http:// sends requests, credentials and backups unencrypted; use https://, and name the Secret with the store's own CA in caSecret",
				path.Child(name, "endpoint")))
		}
	}
	return warnings
}

// proofWarnings says when verify: Restore proves no more than verify: Hash does.
func proofWarnings(verify v1beta2.Verification, encrypted, endpoints bool, path *field.Path) []string {
	why := ""
	switch {
	case verify != v1beta2.VerificationRestore:
		return nil
	case encrypted:
		why = "the recipients of an encrypted backup cannot decrypt it"
	case endpoints:
		why = "a restore needs the etcd image of an EtcdCluster, and etcdEndpoints names none"
	default:
		return nil
	}
	return []string{fmt.Sprintf("%s: Restore has no more effect than Hash here, because %s; restore such a backup into a new cluster from time to time", path.Child("verify"), why)}
}

// WarningsForEtcdBackup returns what the author of a backup should know and may
// ignore.
func WarningsForEtcdBackup(backup *v1beta2.EtcdBackup) []string {
	spec, path := &backup.Spec, field.NewPath("spec")
	warnings := placeWarnings(backupPlace(spec.StorageType, &spec.BackupSource, path), path)
	warnings = append(warnings, proofWarnings(spec.Verify, spec.Encryption != nil, spec.EtcdCluster == nil, path)...)
	warnings = append(warnings, keepingWarnings(backup, path)...)
	policy, at := spec.BackupPolicy, path.Child("backupPolicy")
	if policy == nil {
		return warnings
	}
	for _, unused := range []struct {
		name string
		set  bool
	}{
		{"maxBackups", policy.MaxBackups > 0 && !spec.IsPeriodic()},
		{"maxAge", policy.MaxAge != nil && !spec.IsPeriodic()},
		{"suspend", policy.Suspend && !spec.IsPeriodic()},
	} {
		if unused.set {
			warnings = append(warnings, fmt.Sprintf("%s: has no effect on a single backup; set schedule or backupIntervalInSecond", at.Child(unused.name)))
		}
	}
	if policy.TimeZone != nil && policy.Schedule == "" {
		warnings = append(warnings, fmt.Sprintf("%s: has no effect without schedule", at.Child("timeZone")))
	}
	return warnings
}

// WarningsForEtcdRestore returns what the author of a restore should know and may
// ignore.
func WarningsForEtcdRestore(restore *v1beta2.EtcdRestore) []string {
	spec, path := &restore.Spec, field.NewPath("spec")
	warnings := placeWarnings(restorePlace(spec.BackupStorageType, &spec.RestoreSource, path), path)
	if spec.ClusterTemplate != nil {
		warnings = append(warnings, clusterSpecWarnings(&spec.ClusterTemplate.Spec, path.Child("clusterTemplate", "spec"))...)
	}
	return warnings
}
