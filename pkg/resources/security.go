// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// nonRootID is the user and the group that members run as: "nonroot" of the usual
// minimal images, and no user of a node.
const nonRootID int64 = 65532

// podSecurityContext fills what the user left open so that the pod passes the Pod
// Security Standard "restricted".
func podSecurityContext(policy *v1beta2.PodPolicy) *corev1.PodSecurityContext {
	sc := policy.SecurityContext.DeepCopy()
	if sc == nil {
		sc = &corev1.PodSecurityContext{}
	}
	setDefault(&sc.RunAsUser, ptr.To(nonRootID))
	setDefault(&sc.RunAsGroup, ptr.To(nonRootID))
	// A user that requests root by number gets it, not a pod that never starts.
	setDefault(&sc.RunAsNonRoot, ptr.To(*sc.RunAsUser != 0))
	// Volumes belong to root; the group is what makes them writable.
	setDefault(&sc.FSGroup, ptr.To(nonRootID))
	// Setting the group on every file of a large volume takes minutes, and would
	// undo the mode of the data directory, which etcd wants to be private.
	setDefault(&sc.FSGroupChangePolicy, ptr.To(corev1.FSGroupChangeOnRootMismatch))
	setDefault(&sc.SeccompProfile, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	return sc
}

// containerSecurityContext does the same for a container.
func containerSecurityContext(policy *v1beta2.PodPolicy) *corev1.SecurityContext {
	sc := policy.ContainerSecurityContext.DeepCopy()
	if sc == nil {
		sc = &corev1.SecurityContext{}
	}
	// The API rejects a privileged container that may not gain privileges.
	setDefault(&sc.AllowPrivilegeEscalation, ptr.To(ptr.Deref(sc.Privileged, false)))
	setDefault(&sc.Capabilities, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}})
	// etcd writes below its data directory only.
	setDefault(&sc.ReadOnlyRootFilesystem, ptr.To(true))
	return sc
}

// joinBackupGroup adds the group of the Jobs that store backups on volumes. The files are for that user and group only,
// and the kubelet changes no groups on a volume that a pod mounts read-only.
func joinBackupGroup(sc *corev1.PodSecurityContext) {
	if *sc.RunAsGroup != nonRootID && *sc.FSGroup != nonRootID && !slices.Contains(sc.SupplementalGroups, nonRootID) {
		sc.SupplementalGroups = append(sc.SupplementalGroups, nonRootID)
	}
}

func setDefault[T any](field **T, value *T) {
	if *field == nil {
		*field = value
	}
}
