// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// learnerMinor is the first minor version of etcd 3 whose members can join without a
// vote.
const learnerMinor = 4

// recommendedQuota is the most that etcd's makers advise.
var recommendedQuota = resource.MustParse("8Gi")

// WarningsForEtcdCluster returns what the author of a cluster should know and may
// ignore.
func WarningsForEtcdCluster(cluster *v1beta2.EtcdCluster) []string {
	return clusterSpecWarnings(&cluster.Spec, field.NewPath("spec"))
}

func clusterSpecWarnings(spec *v1beta2.ClusterSpec, path *field.Path) []string {
	var warnings []string
	if size := spec.Replicas; size != nil && *size > 0 && *size%2 == 0 {
		warnings = append(warnings, fmt.Sprintf("%s: %d members tolerate no more failures than %d; choose an odd number", path.Child("size"), *size, *size-1))
	}
	warnings = append(warnings, versionWarnings(spec.Version, path.Child("version"))...)
	if spec.Pod != nil {
		warnings = append(warnings, podWarnings(spec.Pod, path.Child("pod"))...)
	}
	if spec.TLS != nil && channelsOf(spec.TLS) == (channels{}) {
		warnings = append(warnings, fmt.Sprintf("%s: names no certificates, so members speak plain HTTP; set auto, certManager or static", path.Child("TLS")))
	}
	if spec.Etcd != nil {
		warnings = append(warnings, optionWarnings(spec, path.Child("etcd"))...)
	}
	if policy, at := spec.Backup, path.Child("backup"); policy != nil {
		warnings = append(warnings, placeWarnings(backupPlace(policy.StorageType, &policy.BackupSource, at), at)...)
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
	switch {
	case !ok:
		return nil
	case strings.TrimPrefix(version, "v") == v1beta2.DefaultVersion:
		return []string{fmt.Sprintf("%s: %s is the default that old manifests rely on and has reached its end of life; name a supported version", path, version)}
	case parsed.Minor() < learnerMinor:
		return []string{fmt.Sprintf("%s: %s has reached its end of life and has no learners, so that a new member votes before it has caught up; upgrade to 3.4 or later", path, echo(version))}
	}
	return nil
}

func podWarnings(pod *v1beta2.PodPolicy, path *field.Path) []string {
	var warnings []string
	if pod.BusyboxImage != "" {
		warnings = append(warnings, fmt.Sprintf("%s: has no effect, because no container needs it", path.Child("busyboxImage")))
	}
	if pod.DNSTimeoutInSecond != 0 {
		warnings = append(warnings, fmt.Sprintf("%s: has no effect, because nothing waits for DNS", path.Child("DNSTimeoutInSecond")))
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

// envAdvice says what comes of a variable that stands for a flag: etcd prefers the
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
	if quota == nil || !measurable(*quota) {
		return warnings
	}
	at := path.Child("quotaBackendBytes")
	if quota.Cmp(recommendedQuota) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: more than 8Gi is more than etcd is tested with", at))
	}
	if claim := claimOf(spec); claim != nil {
		if storage, found := claim.Resources.Requests[corev1.ResourceStorage]; found && measurable(storage) && quota.Cmp(storage) >= 0 {
			warnings = append(warnings, fmt.Sprintf("%s: the volume of %s is full before the quota is reached; request more storage", at, storage.String()))
		}
	}
	return warnings
}

func placeWarnings(p place, path *field.Path) []string {
	if p.s3 != nil && p.s3.InsecureSkipTLSVerify {
		return []string{fmt.Sprintf("%s: anyone between here and the store can read and change the backup; name a caSecret instead", path.Child("s3", "insecureSkipTLSVerify"))}
	}
	return nil
}

// WarningsForEtcdBackup returns what the author of a backup should know and may
// ignore.
func WarningsForEtcdBackup(backup *v1beta2.EtcdBackup) []string {
	spec, path := &backup.Spec, field.NewPath("spec")
	warnings := placeWarnings(backupPlace(spec.StorageType, &spec.BackupSource, path), path)
	policy, at := spec.BackupPolicy, path.Child("backupPolicy")
	if policy == nil {
		return warnings
	}
	for _, unused := range []struct {
		name string
		set  bool
	}{
		{"maxBackups", policy.MaxBackups > 0 && !periodic(spec)},
		{"maxAge", policy.MaxAge != nil && !periodic(spec)},
		{"suspend", policy.Suspend && !periodic(spec)},
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
